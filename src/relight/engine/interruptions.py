"""An attempt that stood still, was slow or computed nonsense, and that somebody then ended.

A person's scancel or requeue and the scheduler's own word (its time is up, it is preempted) tell
how an attempt ended and nothing of what had been found before. So the verdict that was made while
it lived stays, and what ended it closes the incident. What is printed while it is being ended is
debris of that: it is no cause.
"""

from __future__ import annotations

import msgspec

from relight.diagnosis.endings import Ending, verdict_of_plain_ending
from relight.diagnosis.verdicts import diagnose
from relight.engine.cases import AttemptCase, Requeuer
from relight.engine.opening import EXPIRED, TAKEN_OVER, findings_so_far
from relight.engine.outcomes import withdraw
from relight.engine.trouble import silence_of
from relight.engine.turns import Turn, close
from relight.engine.witnesses import BEFORE_TROUBLE, is_testimony
from relight.model.advice import StatusReason
from relight.model.audit import Topic
from relight.model.findings import Finding, Kind
from relight.model.incidents import Incident, Phase
from relight.model.instants import Instant, Span, later, seconds
from relight.model.jobs import ENDED, JobState
from relight.model.reasons import Reason
from relight.model.verdicts import Verdict

LAST_WORDS = seconds(30)
"""What a log tells so shortly before an end was seen may be part of being ended.

Source: Slurm's KillWait, 30 s from SIGTERM to SIGKILL by default.
"""
REQUEUED = "ended-by-requeue"

_STATES = {
    Kind.HANG: "it stood still",
    Kind.SLOW: "it was slow",
    Kind.NUMERIC: "its numbers were bad",
}
_BY_PERSON = frozenset({JobState.CANCELLED})


def keep_story(turn: Turn, attempt: AttemptCase) -> bool:
    """Close the story of a living attempt with what ended it, its verdict kept; tell whether.

    False where nothing of the kind had been diagnosed, or where the attempt ended by itself.
    """
    ended = _word_of_end(attempt)
    incident = _story_before(attempt)
    if ended is None or incident is None:
        return False
    code, word = ended
    if incident.closed is not None and incident.closed.code == code:
        return True
    verdict = _without_debris(attempt, incident)
    state = _STATES[_trouble_in(incident) or Kind.HANG]
    sentence = f"{word} while {state}; what was found before stands: "
    reason = Reason(code=code, sentence=f"{sentence}{verdict.sentence}.")
    times = msgspec.structs.replace(incident.times, ended=attempt.ended_at or attempt.ended_seen_at)
    kept = msgspec.structs.replace(incident, verdict=verdict, times=times)
    past = tuple(one for one in attempt.past_incidents if one.id != incident.id)
    turn.change(attempt.number, incident=kept, past_incidents=past)
    if kept.phase is Phase.CLOSED:
        turn.change(attempt.number, incident=msgspec.structs.replace(kept, closed=reason))
        turn.tell(attempt.number, Topic.INCIDENT, code, reason.sentence)
    else:
        close(turn, attempt.number, code, reason.sentence)
    by_person = code == REQUEUED or attempt.fact.state in _BY_PERSON
    status = StatusReason.CHANGED_BY_PERSON if by_person else StatusReason.SUPERSEDED
    withdraw(turn, attempt.number, status, f"{word}: nothing is left to be done.")
    return True


def _word_of_end(attempt: AttemptCase) -> tuple[str, str] | None:
    """Return the code and the words of who ended an attempt, None where it ended by itself."""
    state = attempt.fact.state
    plain = verdict_of_plain_ending(Ending(state=state))
    if plain is not None and state is not JobState.COMPLETED:
        return f"ended-{plain.cause}", plain.sentence[:1].upper() + plain.sentence[1:]
    if attempt.requeued_by is Requeuer.PERSON and state not in ENDED:
        return REQUEUED, "The job was put back into the queue by a person or by a rule of Slurm's"
    return None


def _story_before(attempt: AttemptCase) -> Incident | None:
    """Return what was diagnosed before somebody ended the attempt, None where nothing was.

    A story that debris has taken over counts; so does one whose advice nobody followed in time
    while the trouble went on.
    """
    incident = attempt.incident
    if incident is None:
        return None
    if _trouble_in(incident) is None and attempt.past_incidents:
        before = attempt.past_incidents[-1]
        is_taken_over = before.closed is not None and before.closed.code == TAKEN_OVER
        if is_taken_over and all(_is_debris(attempt, one) for one in incident.findings):
            incident = before
    if incident.verdict is None or _trouble_in(incident) is None:
        return None
    return incident if _is_over_by_the_end(attempt, incident) else None


def _is_over_by_the_end(attempt: AttemptCase, incident: Incident) -> bool:
    if incident.closed is None or incident is not attempt.incident:
        return True
    if incident.closed.code != EXPIRED:
        return incident.closed.code.startswith("ended-")
    stepped = attempt.stepped_at
    is_still = _trouble_in(incident) is Kind.HANG
    return not is_still or stepped is None or stepped <= incident.opened_at


def _trouble_in(incident: Incident) -> Kind | None:
    """Return what was wrong with a living attempt; after a line it may have fallen silent."""
    if incident.kind in _STATES:
        return incident.kind
    return Kind.HANG if silence_of(incident) else None


def _without_debris(attempt: AttemptCase, incident: Incident) -> Verdict:
    """Return the verdict as it was before lines of being ended could become part of it."""
    verdict = incident.verdict
    if verdict is None:
        raise LookupError(f"incident {incident.id} has no verdict to keep")
    root = next((one for one in attempt.findings if one.id == verdict.root), None)
    if root is None or not _is_debris(attempt, root):
        return verdict
    since = later(incident.opened_at, Span(-BEFORE_TROUBLE))
    found = findings_so_far(attempt, incident, since)
    kept = tuple(one for one in found if not _is_debris(attempt, one))
    again = diagnose(kept, attempt.allocation, Ending(), attempt.logs_unseen)
    return msgspec.structs.replace(again, revision=verdict.revision + 1)


def _is_debris(attempt: AttemptCase, finding: Finding) -> bool:
    """Tell whether a line was heard only when the attempt was being ended, or after."""
    if is_testimony(finding) or finding.kind in _STATES:
        return False
    return finding.seen_at >= later(_ended(attempt), Span(-LAST_WORDS))


def _ended(attempt: AttemptCase) -> Instant:
    known = [at for at in (attempt.ended_at, attempt.ended_seen_at) if at is not None]
    return min(known, default=attempt.first_seen_at)
