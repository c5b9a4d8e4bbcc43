"""Findings enter a case, and open an incident where they tell of trouble."""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase, Occasion
from relight.engine.turns import Turn, close
from relight.engine.witnesses import BEFORE_TROUBLE, is_outdated, is_testimony, note_testimony
from relight.model.audit import Topic
from relight.model.findings import Finding, Kind, Provenance, Remedy, Role
from relight.model.incidents import Incident, Phase
from relight.model.instants import EPOCH, Instant, Span, later
from relight.model.jobs import JobState

MOST_FINDINGS = 200
"""Findings kept an attempt; what a flood adds beyond them changes no verdict."""

MOST_TESTIMONY = 300
"""Findings kept an attempt, those of witnesses included: a flood of lines must not hide them."""

FULLY_KEPT = 20
"""Findings kept with the lines around theirs; later ones keep the line itself."""

SILENCE, SLOWNESS, NUMERICS = "silence", "slowdown", "numerics"
"""The detectors of trouble that a living attempt's own rhythm tells of."""

RECOVERED_IN_PLACE = "recovered-in-place"
WORK_GOES_ON = "work-goes-on"
PACE_REGAINED = "pace-regained"
TAKEN_OVER = "another-story"
STEPPED_AFTER_ALL = "abandoned-superseded"
SURVIVED = frozenset(
    {RECOVERED_IN_PLACE, WORK_GOES_ON, PACE_REGAINED, TAKEN_OVER, STEPPED_AFTER_ALL}
)
"""How incidents close that an attempt lived through; a later one leaves their findings out."""

_OF_RHYTHM = frozenset({SILENCE, SLOWNESS, NUMERICS})
_NO_TROUBLE = frozenset({Remedy.END, Remedy.REPORT})
_UNDER_WAY = frozenset({Phase.ACTING, Phase.RECOVERING})
_CAN_BE_CAUSE = frozenset({Role.ROOT, Role.EITHER})


def note_finding(turn: Turn, finding: Finding) -> None:
    """Take a finding into its attempt; a line that is known already, by its id, changes nothing.

    What a witness tells again is one finding still, and bears witness again.
    """
    attempt = turn.case.attempt(finding.attempt.attempt)
    if attempt is None or finding.attempt.job != turn.case.key:
        return
    known = next((one for one in attempt.findings if one.id == finding.id), None)
    testimony = is_testimony(finding)
    if known is None and not _is_kept(turn, attempt, finding, testimony=testimony):
        return
    if known is not None and not testimony:
        return
    note_testimony(turn, attempt.number, finding)
    attempt = turn.case.attempt(attempt.number) or attempt
    finding = known or next(one for one in attempt.findings if one.id == finding.id)
    if finding.kind is Kind.ENDING:
        return
    if finding.remedy in _NO_TROUBLE and finding.detector not in _OF_RHYTHM and not testimony:
        return
    _join_incident(turn, attempt, finding, testimony=testimony)


def _is_kept(turn: Turn, attempt: AttemptCase, finding: Finding, *, testimony: bool) -> bool:
    """Put a new finding into its attempt, unless there are enough of its sort; tell which."""
    if len(attempt.findings) >= (MOST_TESTIMONY if testimony else MOST_FINDINGS):
        return False
    if len(attempt.findings) >= FULLY_KEPT:
        root = tuple(one for one in finding.evidence if one.is_root)
        finding = msgspec.structs.replace(finding, evidence=root)
    turn.change(attempt.number, findings=(*attempt.findings, finding))
    turn.tell(
        attempt.number,
        Topic.FINDING,
        finding.rule,
        f"{finding.sentence.rstrip('.')} ({finding.rule}, {finding.role}).",
        finding=finding.id,
        place=f"{finding.place.file}:{finding.place.line}" if finding.place else "",
        line=next((one.text for one in finding.evidence if one.is_root), "")[:400],
    )
    return True


def open_incident(
    turn: Turn, number: int, findings: tuple[Finding, ...] = (), kind: Kind = Kind.CRASH
) -> Incident:
    """Return the open incident of an attempt, opening one where there is none."""
    attempt = turn.case.attempt(number)
    if attempt is None:
        raise LookupError(f"attempt {number} of {turn.case.key} was never seen")
    current = attempt.incident
    if current is not None and current.phase is not Phase.CLOSED:
        return current
    past = attempt.past_incidents if current is None else (*attempt.past_incidents, current)
    incident = Incident(
        id=f"{turn.case.key_of(number)}.{len(past) + 1}",
        phase=Phase.OPEN,
        opened_at=turn.now,
        findings=findings,
        kind=kind,
    )
    turn.change(number, incident=incident, past_incidents=past)
    return incident


def findings_of_story(attempt: AttemptCase) -> tuple[Finding, ...]:
    """Return the findings that may explain an ended attempt.

    Those of incidents that it lived through are left out, unless nothing else was found; that it
    had been slow never explains why it ended. Witnesses count that spoke of this trouble or not
    long before it.
    """
    current = attempt.incident
    survived = {
        finding.id
        for incident in (*attempt.past_incidents, current)
        if incident is not None and incident.closed is not None and incident.closed.code in SURVIVED
        for finding in incident.findings
    }
    at_end = {
        known for one in attempt.looks if one.occasion is not Occasion.LIVING for known in one.found
    }
    survived -= at_end
    joined = {one.id for one in current.findings} - survived if current is not None else set()
    since = later(attempt.ended_seen_at or EPOCH, Span(-BEFORE_TROUBLE))
    possible = tuple(
        one
        for one in attempt.findings
        if one.detector != SLOWNESS
        and not is_outdated(attempt, one)
        and (one.id in joined | at_end or one.seen_at >= since or not is_testimony(one))
    )
    fresh = tuple(one for one in possible if one.id not in survived)
    tells = any(one.kind is not Kind.ENDING and not is_testimony(one) for one in fresh)
    if tells:
        return fresh
    return tuple(
        one for one in possible if one.id not in survived or one.detector not in _OF_RHYTHM
    )


def findings_so_far(
    attempt: AttemptCase, incident: Incident, since: Instant
) -> tuple[Finding, ...]:
    """Return what is known of a living attempt's trouble: its incident, and what witnesses say.

    A witness may have spoken before there was trouble, of a node say; it counts from ``since``.
    """
    joined = {one.id for one in incident.findings}
    said = tuple(
        one
        for one in attempt.findings
        if one.id not in joined and is_testimony(one) and one.seen_at >= since
    )
    return tuple(one for one in (*incident.findings, *said) if not is_outdated(attempt, one))


def _join_incident(turn: Turn, attempt: AttemptCase, finding: Finding, *, testimony: bool) -> None:
    current = attempt.incident
    if current is not None and current.phase is not Phase.CLOSED:
        if _is_another_story(attempt, current, finding):
            close(
                turn,
                attempt.number,
                TAKEN_OVER,
                f"It was slow until something else happened: {finding.sentence.rstrip('.')}.",
            )
            open_incident(turn, attempt.number, (finding,), finding.kind)
        elif all(one.id != finding.id for one in current.findings):
            joined = msgspec.structs.replace(current, findings=(*current.findings, finding))
            turn.change(attempt.number, incident=joined)
    elif testimony and not finding.task_gone:
        return  # recorded: it counts when there is trouble
    elif attempt.fact.state is JobState.COMPLETED:
        return  # whatever it printed, it did what it was to do
    elif attempt.advice is None or attempt.ended_seen_at is None:
        open_incident(turn, attempt.number, (finding,), finding.kind)


def _is_another_story(attempt: AttemptCase, current: Incident, finding: Finding) -> bool:
    """Tell whether a slow attempt now has graver trouble, with a story of its own.

    While it is being restarted, what it prints belongs to that.
    """
    if current.kind is not Kind.SLOW or finding.kind is Kind.SLOW:
        return False
    if current.phase in _UNDER_WAY or (attempt.advice is not None and attempt.advice.is_active):
        return False
    if finding.detector in (SILENCE, NUMERICS) or finding.task_gone:
        return True
    return (
        finding.provenance is Provenance.JOB_LOG
        and not is_testimony(finding)
        and finding.role in _CAN_BE_CAUSE
    )
