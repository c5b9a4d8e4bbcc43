"""Leave to end an attempt that lives holds only while what it rests on is still seen.

Between an advice and the order that follows it, a person may think for an hour, or the controller
may be away. What stood still may have gone on meanwhile, unheard: so the permit is withheld while
the logs are not listened to, and after a person's yes it is given only once witnesses have looked
anew.
"""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase, Occasion
from relight.engine.hearing import HEARD_LATELY, was_heard_lately
from relight.engine.opening import WORK_GOES_ON, findings_so_far
from relight.engine.outcomes import permit_for, withdraw
from relight.engine.trouble import (
    is_at_work,
    is_refutable,
    lost_part,
    silence_of,
    silent_since,
    slow_since,
    slowness_of,
)
from relight.engine.turns import Turn, close
from relight.engine.witnesses import BEFORE_TROUBLE, ask, is_awaited, is_fresh
from relight.model.advice import Advice, Approval, Mode, StatusReason
from relight.model.audit import Topic
from relight.model.findings import Kind
from relight.model.incidents import Incident
from relight.model.instants import Instant, Span, later
from relight.policy.advising import Ruling
from relight.policy.permits import actions_needed
from relight.policy.policies import Policy

_AGREED = frozenset({Approval.NOT_NEEDED, Approval.APPROVED})
_A_MOMENT = Span(1)


def keep_leave(turn: Turn, number: int, policy: Policy) -> None:
    """Withhold or give the permit of an active advice on a living attempt, by what is seen now.

    Nothing is withheld any more once an order was given, nor where the scheduler itself says that
    a part of the attempt is gone or that it has ended.
    """
    attempt = turn.case.attempt(number)
    advice = attempt.advice if attempt is not None else None
    incident = attempt.incident if attempt is not None else None
    if attempt is None or advice is None or incident is None or not advice.is_active:
        return
    if not advice.while_living or attempt.is_being_ended or not _may_be_followed(advice, policy):
        return
    if attempt.ended_seen_at is not None or lost_part(attempt, incident):
        _give(turn, attempt, advice, policy)
        return
    if not _is_listened_to(turn, attempt, incident):
        _withhold(turn, attempt, advice)
    elif advice.permit is None:
        _give_if_still_so(turn, attempt, advice, incident, policy)


def _may_be_followed(advice: Advice, policy: Policy) -> bool:
    if Mode.MONITOR in (advice.mode, policy.mode) or advice.approval not in _AGREED:
        return False
    if advice.mode is Mode.APPROVE and advice.approval is not Approval.APPROVED:
        return False
    ruling = Ruling(decision=advice.decision, reason=advice.reason)
    needed = actions_needed(ruling, is_living=True, is_requeued=False)
    return bool(needed) and all(action in policy.may for action in needed)


def _is_listened_to(turn: Turn, attempt: AttemptCase, incident: Incident) -> bool:
    """Tell whether its logs are listened to; a slow attempt tells of its steps once a minute."""
    if incident.kind is Kind.SLOW:
        return not attempt.logs_unseen
    if not was_heard_lately(turn, attempt):
        return False
    if attempt.heard_at is not None:
        turn.wake(later(later(attempt.heard_at, HEARD_LATELY), _A_MOMENT))
    return True


def _withhold(turn: Turn, attempt: AttemptCase, advice: Advice) -> None:
    if advice.permit is None:
        return
    turn.publish(msgspec.structs.replace(advice, permit=None))
    turn.tell(
        attempt.number,
        Topic.ADVICE,
        "permit-withheld",
        "Its logs are not listened to now, so it may have gone on: nothing is done until they are.",
    )


def _give(turn: Turn, attempt: AttemptCase, advice: Advice, policy: Policy) -> None:
    if advice.permit is not None:
        return
    permit = permit_for(advice, attempt.fact.partition, policy)
    turn.publish(msgspec.structs.replace(advice, permit=permit))
    turn.tell(
        attempt.number,
        Topic.ADVICE,
        "permit-given",
        "What the advice rests on is seen still, so that it may be carried out.",
    )


def _give_if_still_so(
    turn: Turn, attempt: AttemptCase, advice: Advice, incident: Incident, policy: Policy
) -> None:
    if is_awaited(turn, attempt, policy):
        return
    if not is_fresh(turn, attempt, policy):
        attempt = _ask_anew(turn, attempt, incident, policy)
        if is_awaited(turn, attempt, policy):
            return
    since = _standing_since(attempt, incident)
    findings = findings_so_far(attempt, incident, later(since, Span(-BEFORE_TROUBLE)))
    if is_refutable(incident.findings) and is_at_work(attempt, findings, since):
        sentence = "Looked at anew, its GPUs are at work: nothing is done."
        close(turn, attempt.number, WORK_GOES_ON, sentence)
        withdraw(turn, attempt.number, StatusReason.SUPERSEDED, sentence)
        return
    _give(turn, attempt, advice, policy)


def _ask_anew(turn: Turn, attempt: AttemptCase, incident: Incident, policy: Policy) -> AttemptCase:
    if is_refutable(incident.findings):
        since = _standing_since(attempt, incident)
        return ask(turn, attempt, policy, Occasion.LIVING, since, silent_since=since)
    slow = slowness_of(incident)
    began = slow_since(attempt, slow[0], policy.slow_for) if slow else None
    trouble = began or incident.opened_at
    return ask(turn, attempt, policy, Occasion.LIVING, trouble, slow_since=began)


def _standing_since(attempt: AttemptCase, incident: Incident) -> Instant:
    silence = silence_of(incident)
    if silence:
        return silent_since(attempt, silence[0])
    return attempt.stepped_at or incident.opened_at
