"""``relight run``: one command on this machine, supervised as a job of a cluster is.

The child writes into files of its own, so that it goes on when relight is killed; relight
passes on what the files gain. Everything else is the ordinary service over a local cluster
of one node: the same rules, decisions, permits and orders as anywhere.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import structlog

from relight.clients.local.cluster import LocalCluster
from relight.clients.local.jobs import LocalJob
from relight.clients.local.scheduler import LocalEyes, LocalHands
from relight.daemon.clock import now
from relight.daemon.parts import ClusterParts, allowance_of
from relight.daemon.passing import Passage, Stream
from relight.daemon.services import Service
from relight.daemon.stopping import HandsUntilStopped, Person
from relight.daemon.telling import Teller
from relight.engine.cases import Case
from relight.model.advice import Decision, Disposition, Mode
from relight.model.incidents import Phase
from relight.model.instants import in_seconds
from relight.model.jobs import ENDED, JobFact, JobKey, JobState
from relight.policy.policies import OptIn, Policy, PolicyBook
from relight.store.stores import Store

CLUSTER = "local"
LOOK_SECONDS = 0.02
"""Between two looks at the child's output: far below what a person notices."""

_JUDGE_EVERY = 0.2
_PATIENCE = 10.0
"""Seconds beyond the policy's ``drain_logs`` after which an end without advice stands."""
_EPILOGUE = 3.0
"""Seconds in which a run that completed after a restart may still be seen to have recovered."""

_START = (
    'echo $$ >"$3-$RELIGHT_RESTART_COUNT" && out=$1 err=$2 && shift 3 && '
    'exec "$@" >>"$out" 2>>"$err"'
)
"""The child opens its own files, and tells its process id, which is its group's too."""

_SCHEDULERS_WORDS = "/dev/null"
"""What the local scheduler would write into a job's file is no output of the command."""


class UnusableFolder(Exception):  # noqa: N818 - named by what it says
    """The folder for a run's files cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, under which policy, and the new folder in which its files are kept."""

    command: tuple[str, ...]
    policy: Policy
    folder: Path


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The last exit code, 128 and the signal where one ended it, and how often it was restarted."""

    code: int
    restarts: int


def supervise(plan: Plan, say: Callable[[str], None]) -> RunEnd:
    """Run a command, bring it back within its policy, and return how it ended.

    ``say`` is told what a
    person should know, a sentence each. Call it in the main thread: it takes the signals.

    Raises:
        UnusableFolder: the folder cannot be made, or has a name that no log pattern can hold.

    """
    _prepare(plan.folder)
    with ExitStack() as opened:
        person = opened.enter_context(Person())
        cluster = opened.enter_context(LocalCluster(CLUSTER, (_node(),), now))
        _log_to(plan.folder / "relight.log", opened)
        store = opened.enter_context(Store.open(f"sqlite:///{plan.folder}/relight.db"))
        opened.enter_context(Service([_parts(plan, cluster, person)], store, plan.folder, now))
        passage = Passage(
            [Stream(plan.folder / "stdout.log", 1), Stream(plan.folder / "stderr.log", 2)], say
        )
        opened.callback(passage.close)
        job_id = cluster.submit(_job(plan))
        return _Run(plan, cluster, job_id, passage, person).follow(store)


class _Run:
    """Follows one job to its end, in one thread: output, signals, news, and when it is over."""

    def __init__(
        self, plan: Plan, cluster: LocalCluster, job_id: str, passage: Passage, person: Person
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._job_id = job_id
        self._passage = passage
        self._person = person
        self._code = 0
        self._ended_at: float | None = None

    def follow(self, store: Store) -> RunEnd:
        key = JobKey(cluster=CLUSTER, scheduler_id=self._job_id)
        teller = Teller(store, key, self._plan.policy.max_restarts)
        judge_at = 0.0
        while True:
            hurried = self._passage.pass_on()
            fact = self._look()
            if self._person.has_stopped:
                if fact.state in ENDED:
                    break
            elif time.monotonic() >= judge_at:
                judge_at = time.monotonic() + _JUDGE_EVERY
                case = store.case(key)
                for sentence in teller.news(case) if case is not None else ():
                    self._passage.say(sentence)
                if self._is_over(fact, case):
                    break
            if not hurried:
                time.sleep(LOOK_SECONDS)
        self._passage.drain()
        return RunEnd(code=self._code, restarts=fact.restart_count)

    def _look(self) -> JobFact:
        """Look at the job; see to it that signals reach its processes, or end its waiting."""
        fact = self._cluster.fact(self._job_id)
        if fact is None:
            raise LookupError(f"the local cluster forgot job {self._job_id}")
        self._note_end(fact)
        is_running = fact.state is JobState.RUNNING
        self._person.has_child(_group(self._plan.folder, fact) if is_running else None)
        if self._passage.is_cut and not self._person.has_stopped:
            self._passage.say("Nobody reads the output any more: the run is ended.")
            self._person.stop(signal.SIGTERM)
        if self._person.has_stopped and fact.state is JobState.PENDING:
            self._code = self._code or 128 + (self._person.first or 0)
            self._cluster.cancel(self._job_id)
        return fact

    def _note_end(self, fact: JobFact) -> None:
        if fact.state not in ENDED:
            self._ended_at = None
            return
        self._ended_at = self._ended_at or time.monotonic()
        if fact.exit_status is not None:
            self._code = fact.exit_status

    def _is_over(self, fact: JobFact, case: Case | None) -> bool:
        """Tell whether nothing will be done any more."""
        if self._ended_at is None:
            return False
        waited = time.monotonic() - self._ended_at
        if fact.state is JobState.COMPLETED:
            return waited > _EPILOGUE or _is_quiet(fact, case)
        attempt = case.attempt(fact.restart_count) if case is not None else None
        if attempt is None or attempt.ended_seen_at is None or attempt.advice is None:
            patience = in_seconds(self._plan.policy.drain_logs) + _PATIENCE
            return fact.state is JobState.CANCELLED or waited > patience
        advice = attempt.advice
        return (
            advice.decision in (Decision.STOP, Decision.NONE)
            or advice.permit is None
            or advice.status.disposition is Disposition.ABANDONED
        )


def _is_quiet(fact: JobFact, case: Case | None) -> bool:
    """Tell whether a completed job leaves no recovery to be confirmed."""
    if fact.restart_count == 0:
        return True
    before = case.attempt(fact.restart_count - 1) if case is not None else None
    last = case.attempt(fact.restart_count) if case is not None else None
    is_closed = (
        before is not None and before.incident is not None and before.incident.phase is Phase.CLOSED
    )
    return is_closed or (last is not None and last.logs_read)


def _prepare(folder: Path) -> None:
    if not str(folder).isprintable() or "\\" in str(folder):
        raise UnusableFolder(
            f"{folder!s:.200} cannot hold a run's files: choose a folder without backslashes "
            "and characters that cannot be printed"
        )
    try:
        folder.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise UnusableFolder(
            f"{folder} cannot be made ({error.strerror}): name another folder with --logs"
        ) from error


def _job(plan: Plan) -> LocalJob:
    folder = str(plan.folder)
    files = [f"{folder}/{name}" for name in ("stdout.log", "stderr.log", "pid")]
    pattern = re.sub(r"[*?\[]", r"[\g<0>]", folder).replace("%", "%%")
    return LocalJob(
        name=Path(plan.command[0]).name or "run",
        command=("/bin/sh", "-c", _START, "relight", *files, *plan.command),
        stdout=_SCHEDULERS_WORDS,
        work_dir=str(Path.cwd()),
        comment=json.dumps({"relight": {"logs": f"{pattern}/std*.log"}}),
        inherit_stdin=True,
    )


def _parts(plan: Plan, cluster: LocalCluster, person: Person) -> ClusterParts:
    acts = plan.policy.mode is not Mode.MONITOR
    opt_in = OptIn(cluster=CLUSTER, policy=plan.policy.name)
    book = PolicyBook(policies=(plan.policy,), opt_ins=(opt_in,))
    return ClusterParts(
        name=CLUSTER,
        eyes=LocalEyes(cluster),
        hands=HandsUntilStopped(LocalHands(cluster), person) if acts else None,
        book=book,
        allowance=allowance_of(book),
        log_roots=(str(plan.folder),),
    )


def _node() -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname().partition(".")[0]) or "localhost"


def _group(folder: Path, fact: JobFact) -> int | None:
    """Return the process group of the running attempt, None in the moment before it is known."""
    try:
        return int((folder / f"pid-{fact.restart_count}").read_text())
    except (OSError, ValueError):
        return None


def _log_to(file: Path, opened: ExitStack) -> None:
    """Send the service's own log to a file for the length of the run."""
    lines = opened.enter_context(file.open("a"))
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
        ],
        logger_factory=structlog.WriteLoggerFactory(file=lines),
    )
