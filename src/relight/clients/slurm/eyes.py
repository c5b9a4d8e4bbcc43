"""Eyes on a Slurm cluster: a cheap listing each time, detail only of what changed."""

from __future__ import annotations

import re

import msgspec

from relight.clients.running import NotRun, Ran
from relight.clients.slurm import raw
from relight.clients.slurm.commands import Commands, last_words
from relight.clients.slurm.facts import job_fact, node_fact
from relight.clients.slurm.listings import JOB_ID, LISTING, Line, ListingError, parse
from relight.clients.slurm.successors import Successors
from relight.model.instants import Instant, seconds
from relight.model.jobs import JobFact, JobState, NodeFact
from relight.model.seen import Seen, Unseen

_VERSION = re.compile(r"(\d{2})\.(\d{2})")
_FILTERS_JSON_SINCE = (24, 11)
_SHOWS_NODES_AS_JSON_SINCE = (23, 2)
_IDS_A_COMMAND = 500
_SAME_START = seconds(60)
"""No machine starts twice within it."""
_UNKNOWN_JOB = "Invalid job id specified"


class SlurmEyes:
    """Implements ``relight.clients.schedulers.Eyes`` over ``squeue``, ``sinfo`` and ``scontrol``.

    One thread at a time may call it. Before 24.11 ``squeue --json`` ignores which jobs are
    asked for, so there the detail of one changed job costs that of all.
    """

    def __init__(self, cluster: str, commands: Commands) -> None:
        self._cluster = cluster
        self._commands = commands
        self._version: tuple[int, int] | None = None
        self._lines: dict[str, Line] = {}
        self._facts: dict[str, JobFact] = {}
        self._successors = Successors()
        self._booted: dict[str, Instant] = {}

    def jobs(self) -> Seen[tuple[JobFact, ...]] | Unseen:
        """Return every job that slurmctld remembers; an unchanged job is the same object.

        A job whose detail cannot be read keeps its id, with its state unknown. Unseen when
        the listing itself, or the detail of what changed, could not be had.
        """
        lines = self._list()
        if isinstance(lines, Unseen):
            return lines
        if not lines.value:
            return self._confirm_empty()
        changed = [job for job, line in lines.value.items() if self._lines.get(job) != line]
        details = self._details(changed)
        if isinstance(details, Unseen):
            return details
        self._take(lines.value, details.value)
        return Seen(tuple(self._facts.values()))

    def job(self, scheduler_id: str) -> Seen[JobFact | None] | Unseen:
        """Return one job as it is now, None when slurmctld does not know it.

        Its successors are those that ``jobs`` has seen.
        """
        if not JOB_ID.fullmatch(scheduler_id):
            return Seen(None)
        lines = self._list("--jobs", scheduler_id)
        if isinstance(lines, Unseen):
            return lines
        line = lines.value.get(scheduler_id)
        if line is None:
            return Seen(None)
        details = self._details([scheduler_id])
        if isinstance(details, Unseen):
            return details
        fact = details.value.get(scheduler_id) or self._unreadable(line)
        return Seen(self._with_successors(fact))

    def nodes(self) -> Seen[tuple[NodeFact, ...]] | Unseen:
        """Return every node; Unseen also when the record of one cannot be read."""
        version = self._ask_version()
        if isinstance(version, Unseen):
            return version
        if version.value >= _SHOWS_NODES_AS_JSON_SINCE:
            ran = self._look("scontrol", "--all", "show", "nodes", "--json")
        else:
            ran = self._look("sinfo", "--all", "--json")
        if isinstance(ran, Unseen):
            return ran
        try:
            found, broken = raw.decode_nodes(ran.value.output)
        except msgspec.DecodeError as error:
            return Unseen(f"the nodes that Slurm printed cannot be read: {error}")
        if broken:
            return Unseen(f"{broken} of the nodes that Slurm printed cannot be read")
        return Seen(tuple(self._steady(node_fact(self._cluster, node)) for node in found))

    def _steady(self, fact: NodeFact) -> NodeFact:
        """Return the fact with the start of its kernel as told before, unless it moved for real.

        slurmctld takes how long the node is up from the present time each time it registers, so
        what comes out wavers by seconds.
        """
        before, now = self._booted.get(fact.name), fact.booted_at
        if now is not None and before is not None and abs(now - before) < _SAME_START:
            return msgspec.structs.replace(fact, booted_at=before)
        if now is not None:
            self._booted[fact.name] = now
        return fact

    def _list(self, *only: str) -> Seen[dict[str, Line]] | Unseen:
        ran = self._look(*LISTING, *only)
        if isinstance(ran, Unseen):
            return Seen({}) if only and _UNKNOWN_JOB in ran.why else ran
        try:
            return Seen(parse(ran.value.output))
        except ListingError as error:
            return Unseen(str(error))

    def _confirm_empty(self) -> Seen[tuple[JobFact, ...]] | Unseen:
        """Return no jobs only when Slurm says so in JSON too: an empty output is no answer."""
        ran = self._look("squeue", "--all", "--states=all", "--json")
        if isinstance(ran, Unseen):
            return ran
        try:
            found, broken = raw.decode_jobs(ran.value.output)
        except msgspec.DecodeError as error:
            return Unseen(f"squeue printed nothing, and its JSON cannot be read: {error}")
        if found or broken:
            return Unseen("squeue printed nothing although Slurm knows jobs: look again")
        self._take({}, {})
        return Seen(())

    def _details(self, ids: list[str]) -> Seen[dict[str, JobFact]] | Unseen:
        if not ids:
            return Seen({})
        version = self._ask_version()
        if isinstance(version, Unseen):
            return version
        if version.value < _FILTERS_JSON_SINCE:
            return self._detail_of(ids, "squeue", "--json")
        found: dict[str, JobFact] = {}
        for start in range(0, len(ids), _IDS_A_COMMAND):
            part = ids[start : start + _IDS_A_COMMAND]
            options = ("--json", "--all", "--states=all", "--jobs", ",".join(part))
            some = self._detail_of(part, "squeue", *options)
            if isinstance(some, Unseen):
                return some
            found |= some.value
        return Seen(found)

    def _detail_of(self, ids: list[str], *command: str) -> Seen[dict[str, JobFact]] | Unseen:
        ran = self._look(*command)
        if isinstance(ran, Unseen):
            return Seen({}) if _UNKNOWN_JOB in ran.why else ran
        try:
            records, broken = raw.decode_jobs(ran.value.output)
        except msgspec.DecodeError as error:
            return Unseen(f"the jobs that squeue printed cannot be read: {error}")
        by_id = {record.id: record for record in records}
        found: dict[str, JobFact] = {}
        for job in ids:
            record = by_id.get(job)
            if record is None and not broken:
                record = _waiting_array(by_id, job)
            if record is not None and (fact := self._convert(record, job)) is not None:
                found[job] = fact
        return Seen(found)

    def _convert(self, record: raw.RawJob, job: str) -> JobFact | None:
        try:
            return job_fact(self._cluster, record, job)
        except (ValueError, OverflowError):
            return None

    def _take(self, lines: dict[str, Line], details: dict[str, JobFact]) -> None:
        """Keep one sweep; a job without readable detail is asked for again the next time."""
        facts: dict[str, JobFact] = {}
        for job, line in lines.items():
            before = self._facts.get(job)
            if self._lines.get(job) == line and before is not None:
                facts[job] = before
            else:
                facts[job] = details.get(job) or self._unreadable(line)
        self._lines = {
            job: line for job, line in lines.items() if facts[job].state is not JobState.UNKNOWN
        }
        self._successors.learn(facts.values())
        self._facts = {job: self._settled(fact) for job, fact in facts.items()}

    def _settled(self, fact: JobFact) -> JobFact:
        """Return the fact with its successors, as the object given out before when it is equal."""
        fact = self._with_successors(fact)
        before = self._facts.get(fact.scheduler_id)
        return before if before is not None and before == fact else fact

    def _with_successors(self, fact: JobFact) -> JobFact:
        successors = self._successors.of(fact)
        if successors == fact.successors:
            return fact
        return msgspec.structs.replace(fact, successors=successors)

    def _unreadable(self, line: Line) -> JobFact:
        return JobFact(
            cluster=self._cluster,
            scheduler_id=line.job,
            scheduler_state=line.state,
            restart_count=line.restart_count,
        )

    def _ask_version(self) -> Seen[tuple[int, int]] | Unseen:
        if self._version is None:
            ran = self._look("squeue", "--version")
            if isinstance(ran, Unseen):
                return ran
            match = _VERSION.search(ran.value.output.decode(errors="replace"))
            if match is None:
                return Unseen(f"squeue --version names no release: {last_words(ran.value)}")
            self._version = int(match[1]), int(match[2])
        return Seen(self._version)

    def _look(self, *command: str) -> Seen[Ran] | Unseen:
        ran = self._commands.look(*command)
        if isinstance(ran, NotRun):
            return Unseen(f"Slurm did not answer: {ran.why}")
        if ran.status:
            return Unseen(f"{command[0]} failed: {last_words(ran)}")
        return Seen(ran)


def _waiting_array(by_id: dict[str, raw.RawJob], job: str) -> raw.RawJob | None:
    """Return the one record that stands for all tasks of an array that have not started."""
    record = by_id.get(job.partition("_")[0])
    return record if record is not None and record.array_task_string else None
