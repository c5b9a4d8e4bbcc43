"""Findings enter a case, and open an incident where they tell of trouble."""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase, Occasion
from relight.engine.outcomes import withdraw
from relight.engine.turns import Turn, close
from relight.engine.witnesses import BEFORE_TROUBLE, is_outdated, is_testimony, note_testimony
from relight.model.advice import StatusReason
from relight.model.audit import Topic
from relight.model.findings import Finding, Kind, Provenance, Remedy, Role
from relight.model.incidents import Incident, Phase
from relight.model.instants import EPOCH, Instant, Span, later
from relight.model.jobs import JobState
from relight.model.orders import Outcome, Verb
from relight.policy.living import NUMERIC_REPORTED
from relight.policy.policies import Response

MOST_FINDINGS = 200
"""Findings kept an attempt; what a flood adds beyond them changes no verdict."""

MOST_TESTIMONY = 100
"""Findings of witnesses kept an attempt: no flood of lines hides them."""

MOST_OF_RHYTHM = 50
"""Findings kept of each detector that listens to an attempt's rhythm: no flood of lines hides
that it stands still. Of more, the first and the last ones are kept."""

FIRST_KEPT = 10

MOST_PAST = 20
"""Closed incidents kept whole an attempt."""

FULLY_KEPT = 20
"""Findings kept with the lines around theirs; later ones keep the line itself."""

SILENCE, SLOWNESS, NUMERICS = "silence", "slowdown", "numerics"
"""The detectors of trouble that a living attempt's own rhythm tells of."""

RECOVERED_IN_PLACE = "recovered-in-place"
WORK_GOES_ON = "work-goes-on"
PACE_REGAINED = "pace-regained"
TAKEN_OVER = "another-story"
STEPPED_AFTER_ALL = "abandoned-superseded"
SUSPENDED = "suspended"
_ABANDONED = "abandoned-"
EXPIRED = "abandoned-advice-expired"
REJECTED = "abandoned-changed-by-person"
SURVIVED = frozenset(
    {RECOVERED_IN_PLACE, WORK_GOES_ON, PACE_REGAINED, TAKEN_OVER, STEPPED_AFTER_ALL, SUSPENDED}
)
"""How incidents close that an attempt lived through; a later one leaves their findings out."""

_TRACEBACKS = "tracebacks"
_OF_RHYTHM = frozenset({SILENCE, SLOWNESS, NUMERICS})
_NO_TROUBLE = frozenset({Remedy.END, Remedy.REPORT})
_REQUEUED = "slurm-requeued"
"""The rule of Slurm's own line about a requeue, which does not say whose it was."""
_LASTS = frozenset({WORK_GOES_ON, SUSPENDED, EXPIRED})
"""How an incident closes that may be the same story still when it is looked at again."""
_UNDER_WAY = frozenset({Phase.ACTING, Phase.RECOVERING})
_STEPS_GO_ON = frozenset({Kind.SLOW, Kind.NUMERIC})
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
    if not _has_room(attempt, finding, testimony=testimony):
        return False
    if len(attempt.findings) >= FULLY_KEPT:
        root = tuple(one for one in finding.evidence if one.is_root)
        finding = msgspec.structs.replace(finding, evidence=root)
    turn.change(attempt.number, findings=_with(attempt.findings, finding))
    if _says_nothing_new(attempt, finding):
        return True
    turn.tell(
        attempt.number,
        Topic.FINDING,
        finding.rule,
        f"{_sentence(attempt, finding).rstrip('.')} ({finding.rule}, {finding.role}).",
        finding=finding.id,
        place=f"{finding.place.file}:{finding.place.line}" if finding.place else "",
        line=next((one.text for one in finding.evidence if one.is_root), "")[:400],
    )
    return True


def _says_nothing_new(attempt: AttemptCase, finding: Finding) -> bool:
    """Tell whether a line that is no trouble says what another rank or an earlier line has said."""
    return finding.remedy in _NO_TROUBLE and any(
        (one.rule, one.sentence) == (finding.rule, finding.sentence) for one in attempt.findings
    )


def _sentence(attempt: AttemptCase, finding: Finding) -> str:
    """Return what a finding says, of a requeue by whose order it was where that is known."""
    is_ours = any(
        one.order.verb is Verb.REQUEUE and one.outcome is not Outcome.REFUSED
        for one in attempt.orders
    )
    if finding.rule == _REQUEUED and is_ours:
        return "The job was put back into the queue, as relight had ordered."
    return finding.sentence


def _has_room(attempt: AttemptCase, finding: Finding, *, testimony: bool) -> bool:
    """Tell whether there are not yet too many findings of its sort; rhythm has room of its own."""
    if finding.detector in _OF_RHYTHM:
        return True
    alike = sum(
        one.detector not in _OF_RHYTHM and is_testimony(one) is testimony
        for one in attempt.findings
    )
    return alike < (MOST_TESTIMONY if testimony else MOST_FINDINGS)


def _with(findings: tuple[Finding, ...], finding: Finding) -> tuple[Finding, ...]:
    """Return findings with one more; of one detector of rhythm, the first and the last are kept."""
    alike = [one.id for one in findings if one.detector == finding.detector]
    if finding.detector in _OF_RHYTHM and len(alike) >= MOST_OF_RHYTHM:
        findings = tuple(one for one in findings if one.id != alike[FIRST_KEPT])
    return (*findings, finding)


def open_incident(
    turn: Turn, number: int, findings: tuple[Finding, ...] = (), kind: Kind = Kind.CRASH
) -> Incident:
    """Return the open incident of an attempt, opening one where there is none.

    One that is only looked at again keeps its number: it is the same story.
    """
    attempt = turn.case.attempt(number)
    if attempt is None:
        raise LookupError(f"attempt {number} of {turn.case.key} was never seen")
    current = attempt.incident
    if current is not None and current.phase is not Phase.CLOSED:
        return current
    told = 1
    if current is not None:
        is_same = _is_same_story(current, findings)
        told = int(current.id.rpartition(".")[2]) + (0 if is_same else 1)
        attempt = attempt if is_same else _put_away(turn, attempt, current)
    incident = Incident(
        id=f"{turn.case.key_of(number)}.{told}",
        phase=Phase.OPEN,
        opened_at=turn.now,
        findings=findings,
        kind=kind,
    )
    turn.change(number, incident=incident)
    return incident


def _is_same_story(closed: Incident, findings: tuple[Finding, ...]) -> bool:
    known = {one.id for one in closed.findings}
    is_lasting = closed.closed is not None and closed.closed.code in _LASTS
    return is_lasting and bool(findings) and all(one.id in known for one in findings)


def _put_away(turn: Turn, attempt: AttemptCase, closed: Incident) -> AttemptCase:
    """Put a closed incident with the past ones, of which only the last are kept whole."""
    past = (*attempt.past_incidents, closed)
    known = {one.id for one in attempt.findings}
    outlived = {one.id for old in past[:-MOST_PAST] if _is_survived(old) for one in old.findings}
    survived = tuple(sorted(known & (outlived | {*attempt.survived})))
    return turn.change(attempt.number, past_incidents=past[-MOST_PAST:], survived=survived)


def _is_survived(incident: Incident) -> bool:
    return incident.closed is not None and incident.closed.code in SURVIVED


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
        if incident is not None and _is_survived(incident)
        for finding in incident.findings
    } | {*attempt.survived}
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
    if finding.detector == NUMERICS and was_told(turn, attempt, finding):
        return  # every further number of the kind would open, and tell, the same again
    if current is not None and current.phase is not Phase.CLOSED:
        if _is_another_story(turn, attempt, current, finding):
            _take_over(turn, attempt, current, finding)
        elif all(one.id != finding.id for one in current.findings):
            joined = msgspec.structs.replace(current, findings=_with(current.findings, finding))
            turn.change(attempt.number, incident=joined)
    elif testimony and not finding.task_gone:
        return  # recorded: it counts when there is trouble
    elif attempt.fact.state is JobState.COMPLETED:
        return  # whatever it printed, it did what it was to do
    elif attempt.advice is None or attempt.ended_seen_at is None:
        open_incident(turn, attempt.number, (finding,), finding.kind)


def was_told(turn: Turn, attempt: AttemptCase, finding: Finding) -> bool:
    """Tell whether numeric trouble by this rule was told of this attempt and nothing is to follow.

    So it is where trouble is only told, where nothing could be done, and after a person's no.
    """
    return any(
        one.rule == finding.rule
        for incident in (*attempt.past_incidents, attempt.incident)
        if incident is not None and _is_settled(turn, incident)
        for one in incident.findings
    )


def _is_settled(turn: Turn, incident: Incident) -> bool:
    """Tell whether a closed story of bad numbers ended with a word, and no act could follow."""
    if incident.closed is None:
        return False
    code = incident.closed.code
    if code == NUMERIC_REPORTED:
        return _is_only_told(turn)
    if incident.kind is not Kind.NUMERIC:
        return False
    is_ruled = incident.times.advised is not None and code not in SURVIVED
    return code == REJECTED or (is_ruled and not code.startswith(_ABANDONED))


def _is_only_told(turn: Turn) -> bool:
    policy = turn.book.policy(turn.case.choice.policy)
    return policy is not None and policy.numeric is Response.REPORT


def is_followed(attempt: AttemptCase) -> bool:
    """Tell whether the scheduler was asked for what the active advice of an attempt wants.

    A signal is the beginning of that for the generation that it was sent for, and no longer.
    """
    advice = attempt.advice
    return advice is not None and any(
        one.outcome is not Outcome.REFUSED
        and (one.order.verb is not Verb.SIGNAL or one.order.generation == advice.generation)
        for one in attempt.orders
    )


def _take_over(turn: Turn, attempt: AttemptCase, current: Incident, finding: Finding) -> None:
    """End a story of slowness or of numbers for a graver one, and what was advised in it."""
    was = "It was slow" if current.kind is Kind.SLOW else "Its numbers were bad"
    why = f"{was} until something else happened: {finding.sentence.rstrip('.')}."
    close(turn, attempt.number, TAKEN_OVER, why)
    withdraw(turn, attempt.number, StatusReason.SUPERSEDED, why)
    since = attempt.stepped_at or EPOCH
    lines = (
        one
        for one in current.findings
        if one.detector not in _OF_RHYTHM and one.seen_at >= since and finding.detector == SILENCE
    )
    open_incident(turn, attempt.number, (*lines, finding), finding.kind)


def _is_another_story(
    turn: Turn, attempt: AttemptCase, current: Incident, finding: Finding
) -> bool:
    """Tell whether an attempt that is slow, or whose numbers are bad, now has graver trouble.

    While it is being restarted, what it prints belongs to that.
    """
    if current.kind not in _STEPS_GO_ON or finding.kind in (Kind.SLOW, current.kind):
        return False
    if current.phase in _UNDER_WAY:
        return False
    stands_still = finding.detector == SILENCE or finding.task_gone
    advice = attempt.advice
    if advice is not None and advice.is_active:
        is_line = _may_have_stopped if finding.detector == SILENCE else _may_be_cause
        rests_on_line = any(
            is_line(one) and one.seen_at <= advice.made_at for one in current.findings
        )
        is_acted_on = finding.detector == NUMERICS and not _is_only_told(turn)
        return (stands_still or is_acted_on) and not rests_on_line and not is_followed(attempt)
    if stands_still or current.kind is not Kind.SLOW:
        return stands_still
    return finding.detector == NUMERICS or _may_be_cause(finding)


def _may_be_cause(finding: Finding) -> bool:
    return (
        finding.provenance is Provenance.JOB_LOG
        and not is_testimony(finding)
        and finding.role in _CAN_BE_CAUSE
        and finding.detector not in _OF_RHYTHM
    )


def _may_have_stopped(finding: Finding) -> bool:
    """Tell whether a line explains a silence after it; one that tells of shared things does not.

    Nor does an exception that was printed: it may have been caught.
    """
    return (
        _may_be_cause(finding)
        and finding.kind not in _STEPS_GO_ON
        and finding.remedy is not Remedy.HOLD
        and finding.detector != _TRACEBACKS
    )
