"""How an attempt ended, by the scheduler alone."""

from __future__ import annotations

from relight.model.findings import Domain, Kind, Remedy
from relight.model.instants import Instant
from relight.model.jobs import JobState
from relight.model.records import Record
from relight.model.verdicts import Verdict


class Ending(Record, frozen=True, kw_only=True):
    """What the scheduler says of an attempt's end; state None while it lives.

    ``gone_nodes`` are nodes of the allocation that went down while it lived. ``at`` is when it
    ended by the scheduler's clock, None while it lives or where that is not known.
    """

    state: JobState | None = None
    exit_status: int | None = None
    exit_signal: int | None = None
    gone_nodes: tuple[str, ...] = ()
    at: Instant | None = None


_PLAIN = {
    JobState.CANCELLED: ("cancelled", "user_cancelled", Domain.USER, "a person cancelled the job"),
    JobState.TIMEOUT: (
        "time-limit",
        "slurm_time_limit",
        Domain.SCHEDULER,
        "the job ran into its time limit",
    ),
    JobState.PREEMPTED: (
        "preempted",
        "job_preempted",
        Domain.SCHEDULER,
        "the scheduler preempted the job",
    ),
    JobState.COMPLETED: ("completed", "healthy_finished", Domain.NONE, "the job completed"),
}

_EXIT_CODES = {
    2: ("usage-error", Domain.USER, "exit code 2, which programs use for wrong arguments"),
    126: ("not-executable", Domain.USER, "exit code 126: a command could not be executed"),
    127: ("command-not-found", Domain.USER, "exit code 127: a command was not found"),
}


def verdict_of_plain_ending(ending: Ending) -> Verdict | None:
    """Return the verdict of an end that is no failure: finished, cancelled, preempted, time up.

    None for every other state. What the log holds cannot change these: a run that was told
    to stop prints errors while it stops.
    """
    if ending.state is None or ending.state not in _PLAIN:
        return None
    cause, family, domain, sentence = _PLAIN[ending.state]
    return Verdict(
        domain=domain,
        cause=cause,
        family=family,
        kind=Kind.ENDING,
        remedy=Remedy.END,
        sentence=sentence,
        fingerprint=cause,
        confidence=0.99,
    )


def verdict_without_findings(ending: Ending, logs_unseen: str) -> Verdict:
    """Return what can be said when no line explains the end: the state and the exit code.

    What the scheduler itself says of the cause needs no log; a job whose node did not boot
    has none.
    """
    if ending.state is JobState.OUT_OF_MEMORY:
        return _unexplained(
            "out-of-memory",
            "host_oom_kill",
            Domain.APPLICATION,
            Remedy.CONFIRM_THEN_STOP,
            "the scheduler says that the job ran out of host memory",
        )
    if ending.state is JobState.BOOT_FAIL:
        return _unexplained(
            "boot-fail",
            "node_failure",
            Domain.SYSTEM_SOFTWARE,
            Remedy.RESTART,
            "a node of the job did not boot",
        )
    if logs_unseen:
        return _unexplained(
            "logs-unseen",
            "unknown",
            Domain.UNKNOWN,
            Remedy.REPORT,
            f"why it failed is not known, because its logs were not seen: {logs_unseen}",
        )
    if ending.exit_status in _EXIT_CODES:
        cause, domain, words = _EXIT_CODES[ending.exit_status]
        return _unexplained(cause, "config_error", domain, Remedy.STOP, words)
    ended = _describe_exit(ending)
    return _unexplained(
        "unknown-failure",
        "unknown",
        Domain.UNKNOWN,
        Remedy.CONFIRM_THEN_STOP,
        f"{ended}, and no line of its log explains why",
    )


def _describe_exit(ending: Ending) -> str:
    if ending.exit_signal:
        return f"it was ended by signal {ending.exit_signal}"
    if ending.exit_status:
        return f"it ended with exit code {ending.exit_status}"
    return "it failed"


def _unexplained(cause: str, family: str, domain: Domain, remedy: Remedy, words: str) -> Verdict:
    return Verdict(
        domain=domain,
        cause=cause,
        family=family,
        kind=Kind.CRASH,
        remedy=remedy,
        sentence=words,
        fingerprint=cause,
        confidence=0.3,
    )
