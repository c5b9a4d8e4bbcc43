"""Where a job ran and what it wrote, as the running service or else the scheduler says."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from relight.cli.asking import backend, job_named
from relight.cli.tokens import NoToken
from relight.clients.backend import BackendError, BackendUnreachable, NotFound
from relight.clients.schedulers import Eyes
from relight.clients.slurm.commands import Commands
from relight.clients.slurm.eyes import SlurmEyes
from relight.daemon.parts import parts_of
from relight.model.jobs import Allocation, JobFact
from relight.model.records import Record
from relight.model.seen import Unseen
from relight.policy.opt_in import choose
from relight.policy.policies import PolicyBook
from relight.settings.loading import find, load
from relight.sources.log_globs import log_glob
from relight.sources.output_patterns import UnknownNameError, output_files


class JobLogs(Record, frozen=True, kw_only=True):
    """The nodes of a job's last attempt, and the files and globs that it writes to.

    ``unknown`` says why there are none of these.
    """

    allocation: Allocation
    words: tuple[str, ...]
    unknown: str = ""


def ask(job: str, url: str) -> JobLogs:
    """Return what the service knows of a job, else what the scheduler does.

    Raises:
        NotFound: both answered, and neither knows such a job.
        BackendUnreachable: one of them does not answer, and the other does not know it.
        SettingsError: there are settings, and they cannot be read.

    """
    try:
        client = backend(url)
        case = client.job(job_named(client, job)).case
    except (BackendError, NoToken) as error:
        is_unknown = isinstance(error, NotFound)
        return _ask_scheduler(job, str(error), is_unknown=is_unknown)
    if not case.attempts:
        raise NotFound(f"{case.key} has not started: there is nothing to diagnose yet")
    last = case.attempts[-1]
    return _logs(last.fact, last.allocation, case.choice.logs)


def _ask_scheduler(job: str, said: str, *, is_unknown: bool) -> JobLogs:
    reasons = [f"the service: {said}"]
    for name, eyes in _eyes():
        answer = eyes.job(job.rpartition(":")[2])
        if isinstance(answer, Unseen):
            is_unknown = False
            reasons.append(f"{name}: {answer.why}")
        elif answer.value is None:
            reasons.append(f"{name}: it does not know the job, which may have ended long ago")
        else:
            return _logs_of(answer.value)
    told = "\n".join(reasons)
    sentence = f"nobody knows where job {job} ran and what it wrote; name its files\n{told}"
    raise NotFound(sentence) if is_unknown else BackendUnreachable(sentence)


def _eyes() -> Iterator[tuple[str, Eyes]]:
    if find(None, os.environ) is not None:
        for part in parts_of(load(None, os.environ)):
            yield f"cluster {part.name}", part.eyes
    elif shutil.which("squeue"):
        yield "Slurm", SlurmEyes("slurm", Commands())


def _logs_of(fact: JobFact) -> JobLogs:
    per_node = _per_node(fact)
    allocation = Allocation(nodes=fact.nodes, tasks_per_node=per_node, ranks_are_tasks=per_node > 1)
    return _logs(fact, allocation, choose(fact, PolicyBook()).logs)


def _per_node(fact: JobFact) -> int:
    if fact.tasks_per_node or not fact.nodes:
        return fact.tasks_per_node
    return fact.tasks // len(fact.nodes) if fact.tasks % len(fact.nodes) == 0 else 0


def _logs(fact: JobFact, allocation: Allocation, logs: str) -> JobLogs:
    output = output_files(fact, allocation.nodes)
    words = [file.path for file in output.files]
    reasons = [one.why for one in output.unseen]
    if logs:
        try:
            words.append(log_glob(logs, fact).pattern)
        except UnknownNameError as error:
            reasons.append(str(error))
    why = "; ".join(reasons) or "its scheduler names none"
    return JobLogs(
        allocation=allocation,
        words=tuple(words),
        unknown="" if words else f"the logs of job {fact.scheduler_id} are not known ({why})",
    )
