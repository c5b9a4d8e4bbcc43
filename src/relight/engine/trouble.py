"""What the findings of a living attempt say: it stands still, is slow, or computes nonsense.

Pure readings of a case; what follows from them stands in ``living``, ``hangs``, ``slowness`` and
``numerics``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from relight.diagnosis.clocks import CLOCK_SLACK
from relight.engine.cases import AttemptCase, Mark
from relight.engine.opening import NUMERICS, SILENCE, SLOWNESS
from relight.engine.witnesses import GPUS_WORK, is_testimony, newest_sight
from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.incidents import Incident, Phase
from relight.model.instants import EPOCH, Instant, Span, in_seconds, later, seconds

WAITING = frozenset({"gpus-spin", "gpu-idle-among-busy"})
"""What metrics show of GPUs that wait for one another: it confirms that silence means a stop.

That all are idle confirms nothing: so they are while a checkpoint is written, while data is
waited for, and in a job that does not use them.
"""
TELEMETRY_GONE = "telemetry-gone"
"""The rule of a node whose metrics stopped; as a symptom only its exporter may have."""
CULPRITS = frozenset(
    {"rank-not-joined", "rank-stuck-in-transport", "collective-mismatch", "stream-blocked"}
)
"""What a flight recorder shows of ranks that wait for one another."""
GONE_NODES = frozenset({"node-down", "node-rebooted"})
"""What the scheduler says of a node that no longer takes part.

One that does not answer the scheduler may answer again a moment later, and nobody tells; one that
stays so is called down.
"""
DEATHS = GONE_NODES | {"node-rebooted-by-metrics"}
"""Rules of a node that died: these alone confirm that an attempt hangs which never stepped."""

TRACEBACKS = "tracebacks"
"""The detector of exceptions that no rule knows better."""
TOLD_LATE = seconds(120)
"""Progress is told once a minute, so a step may be this much older than it was told."""
MARKS_APART = seconds(30)
MOST_MARKS = 60
MOST_CHECKPOINTS = 30
ENOUGH_STEPS = 10
"""A pace over fewer steps is mostly the moment at which they were told."""

STEPS_ALL_THE_SAME = frozenset({Kind.SLOW, Kind.NUMERIC})
"""Trouble of which steps tell nothing: they were made in it."""

_CAN_BE_CAUSE = frozenset({Role.ROOT, Role.EITHER})


def is_open(incident: Incident | None) -> bool:
    """Tell whether there is an incident that is not closed."""
    return incident is not None and incident.phase is not Phase.CLOSED


def lost_part(attempt: AttemptCase, incident: Incident) -> bool:
    """Tell whether the scheduler itself says that a task or node of the attempt is gone."""
    return bool(attempt.gone_nodes) or any(one.task_gone for one in incident.findings)


def silence_of(incident: Incident) -> tuple[Finding, ...]:
    """Return the findings of silence since the last step that was told, the oldest first."""
    told = sorted(
        (one for one in incident.findings if one.detector == SILENCE), key=lambda one: one.seen_at
    )
    stepped = incident.stepped_at
    return tuple(one for one in told if stepped is None or one.seen_at >= stepped)


def slowness_of(incident: Incident) -> tuple[Finding, ...]:
    """Return the findings of slowness, the oldest first."""
    told = (one for one in incident.findings if one.detector == SLOWNESS)
    return tuple(sorted(told, key=lambda one: one.seen_at))


def numerics_of(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings of numeric trouble by the numbers that a log prints, oldest first."""
    told = (one for one in findings if one.detector == NUMERICS)
    return tuple(sorted(told, key=lambda one: one.seen_at))


def silent_since(attempt: AttemptCase, silence: Finding) -> Instant:
    """Return when the last step was completed, by the finding where it can be, else as told.

    While it was suspended it could complete none: that time does not count.
    """
    stepped = attempt.stepped_at or attempt.running_at or attempt.first_seen_at
    resumed = attempt.resumed_at or EPOCH
    stepped = max(stepped, resumed)
    earliest = later(stepped, Span(-TOLD_LATE))
    if silence.at is not None and earliest <= silence.at <= silence.seen_at:
        return silence.at
    return max(min(stepped, silence.seen_at), resumed)


def slow_since(attempt: AttemptCase, slowness: Finding, lasting: Span) -> Instant:
    """Return when it became slow: by the finding where it can be, else as long as it must last."""
    began = attempt.running_at or attempt.first_seen_at
    if slowness.at is not None and began <= slowness.at <= slowness.seen_at:
        return slowness.at
    return later(slowness.seen_at, Span(-lasting))


def signs_of_hang(findings: Sequence[Finding], since: Instant) -> tuple[Finding, ...]:
    """Return what confirms that an attempt stands still which has been silent ``since`` then.

    What was so before the last step was lived through, whatever it was.
    """
    return tuple(one for one in findings if _confirms(one) and _is_of(one, since))


def signs_of_death(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return what tells that a node of an attempt died, or a task that ran on it."""
    return tuple(
        one
        for one in findings
        if one.role is not Role.BENIGN
        and (one.task_gone or (one.rule in DEATHS and is_testimony(one)))
    )


def _is_of(one: Finding, since: Instant) -> bool:
    """Tell whether a sign is of this silence.

    What was asked about it is, whenever a rank says that it began to wait. Clocks of machines
    differ a little, as do scrapes, and the last step may be told after what stopped the job.
    """
    if one.rule in WAITING or one.rule in CULPRITS:
        return one.seen_at >= since
    is_dated = one.at is not None and one.provenance is not Provenance.JOB_LOG
    at = one.at if one.at is not None and is_dated else one.seen_at
    return later(at, CLOCK_SLACK) >= since


def _confirms(one: Finding) -> bool:
    if one.role is Role.BENIGN:
        return False
    if one.rule in WAITING:
        return one.provenance is Provenance.TELEMETRY
    if one.rule == TELEMETRY_GONE:
        return one.provenance is Provenance.TELEMETRY and one.role is not Role.SYMPTOM
    if one.rule in CULPRITS and is_testimony(one):
        return True
    if one.task_gone or one.provenance is Provenance.SCHEDULER:
        return one.task_gone or one.rule in GONE_NODES
    if one.provenance is Provenance.JOB_LOG:
        return one.kind is Kind.HANG and one.detector != SILENCE and not is_testimony(one)
    return one.role is Role.ROOT and one.domain is Domain.HARDWARE and one.kind is not Kind.SLOW


def shows_work(findings: Sequence[Finding], since: Instant = EPOCH) -> bool:
    """Tell whether metrics show GPUs at work while it is silent, and nothing gainsays it."""
    return any(is_work(one) for one in findings) and not signs_of_hang(findings, since)


def is_at_work(attempt: AttemptCase, findings: Sequence[Finding], since: Instant) -> bool:
    """Tell whether an attempt's GPUs are at work, as far as was seen in this silence.

    Where metrics could not be had since, what they showed last stands: no answer is not an answer.
    """
    last = newest_sight(attempt, since)
    shown = last.found if last is not None else ()
    work = tuple(one for one in attempt.findings if is_work(one) and one.id in shown)
    return shows_work((*findings, *work), since)


def is_work(finding: Finding) -> bool:
    """Tell whether a finding says that GPUs are at work."""
    return finding.rule == GPUS_WORK and finding.provenance is Provenance.TELEMETRY


def may_have_stopped(finding: Finding) -> bool:
    """Tell whether a line alone may have stopped a living attempt for good.

    A traceback may have been caught and printed, and what is shared may come back: of these
    only an ending tells. A run that computes nonsense or is slow goes on all the same; where it
    does not, its silence tells.
    """
    return (
        finding.role in _CAN_BE_CAUSE
        and finding.kind not in STEPS_ALL_THE_SAME
        and finding.remedy is not Remedy.HOLD
        and finding.detector not in (TRACEBACKS, SILENCE, SLOWNESS, NUMERICS)
        and not is_testimony(finding)
    )


def is_refutable(findings: Sequence[Finding]) -> bool:
    """Tell whether progress speaks against what findings tell: a line, a silence.

    Slow steps and bad numbers were found in steps, so that more of these tell nothing.
    """
    if not any(one.detector in (SLOWNESS, NUMERICS) for one in findings):
        return True
    return any(
        one.detector == SILENCE or one.task_gone or may_have_stopped(one) for one in findings
    )


def with_mark(attempt: AttemptCase, now: Instant) -> tuple[Mark, ...]:
    """Return an attempt's marks with the step that was told now, unless the last is too near."""
    step = attempt.progress.best_step
    marks = attempt.marks
    if step is None or (marks and (step <= marks[-1].step or now - marks[-1].at < MARKS_APART)):
        return marks
    return (*marks, Mark(at=now, step=step))[-MOST_MARKS:]


def pace_before(attempt: AttemptCase, since: Instant) -> float | None:
    """Return the usual seconds of one step before an instant, None where too little was told."""
    return _usual_pace([one for one in attempt.marks if one.at <= since])


def pace_now(attempt: AttemptCase, since: Instant, lasting: Span) -> float | None:
    """Return the usual seconds of one step lately, over at least ``lasting``; None while too short.

    Only what was told from ``since`` on counts.
    """
    marks = [one for one in attempt.marks if one.at >= since]
    for number in range(len(marks) - 1, -1, -1):
        steps = marks[-1].step - marks[number].step
        if steps >= ENOUGH_STEPS and marks[-1].at - marks[number].at >= lasting:
            return _usual_pace(marks[number:])
    return None


def _usual_pace(marks: Sequence[Mark]) -> float | None:
    """Return the median: between two marks there may have been a checkpoint."""
    paces = [
        in_seconds(after.at - before.at) / (after.step - before.step)
        for before, after in pairwise(marks)
    ]
    return median(paces) if paces else None
