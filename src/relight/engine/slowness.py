"""A living attempt has become slow: told, or moved off the slow node at its next checkpoint.

Slow is not dead: it loses minutes, a restart loses minutes too. So nothing is done but where the
policy wants it and one node is named; and then only when a checkpoint has just been completed.
"""

from __future__ import annotations

import msgspec

from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.engine.advising import give_advice
from relight.engine.cases import AttemptCase, Occasion
from relight.engine.opening import PACE_REGAINED, findings_so_far, is_followed
from relight.engine.outcomes import withdraw
from relight.engine.plans import SLOW_RESTART, plan_at_checkpoint
from relight.engine.recording import record_verdict
from relight.engine.trouble import pace_before, pace_now, slow_since, slowness_of
from relight.engine.turns import Turn, close
from relight.engine.witnesses import BEFORE_TROUBLE, ask, is_awaited, is_fresh, newest
from relight.model.advice import StatusReason
from relight.model.audit import Topic
from relight.model.findings import Finding, Kind
from relight.model.incidents import Incident, Phase, Plan
from relight.model.instants import Instant, Span, later
from relight.model.verdicts import Verdict
from relight.policy.living import SLOWDOWN_REPORTED, forewarning_of, names_slow_node, reported
from relight.policy.policies import Policy, Response


def judge_slowness(turn: Turn, attempt: AttemptCase, incident: Incident, policy: Policy) -> None:
    """Draw every conclusion about an attempt that steps more slowly than it did."""
    told = slowness_of(incident)
    since = slow_since(attempt, told[0], policy.slow_for)
    if _has_regained_pace(turn, attempt, policy, since, told[-1]):
        return
    if incident.phase is Phase.ADVISED and not _is_news(attempt, told[-1]):
        return
    asked = newest(attempt, Occasion.LIVING)
    if asked is None or asked < told[-1].seen_at:
        attempt = _ask(turn, attempt, policy, since)
    if is_awaited(turn, attempt, policy):
        return
    findings = findings_so_far(attempt, incident, later(since, Span(-BEFORE_TROUBLE)))
    verdict = diagnose(findings, attempt.allocation, Ending(), attempt.logs_unseen)
    record_verdict(turn, attempt, verdict)
    if policy.slow is Response.RESTART and names_slow_node(verdict):
        _move_at_checkpoint(turn, attempt, policy, verdict, since)
        return
    _drop_plan(turn, attempt)
    why = ""
    if policy.slow is Response.RESTART:
        why = "No node is surely the slow one, so that another place would be no better."
    give_advice(
        turn,
        attempt.number,
        verdict,
        policy,
        ruling=reported(SLOWDOWN_REPORTED, verdict, why),
    )


def withdraw_if_well(turn: Turn, attempt: AttemptCase, policy: Policy) -> bool:
    """Withdraw the active advice on a slow attempt that has its old pace again; tell whether."""
    incident = attempt.incident
    if incident is None or incident.kind is not Kind.SLOW or incident.phase is not Phase.ADVISED:
        return False
    told = slowness_of(incident)
    if not told or is_followed(attempt):
        return False
    since = slow_since(attempt, told[0], policy.slow_for)
    if not _has_regained_pace(turn, attempt, policy, since, told[-1]):
        return False
    sentence = "It steps at its old pace again: there is nothing to restart it for."
    withdraw(turn, attempt.number, StatusReason.SUPERSEDED, sentence)
    return True


def _is_news(attempt: AttemptCase, slowness: Finding) -> bool:
    advice = attempt.advice
    return advice is None or slowness.seen_at > advice.made_at


def _ask(turn: Turn, attempt: AttemptCase, policy: Policy, since: Instant) -> AttemptCase:
    return ask(turn, attempt, policy, Occasion.LIVING, since, slow_since=since)


def _has_regained_pace(
    turn: Turn, attempt: AttemptCase, policy: Policy, since: Instant, slowness: Finding
) -> bool:
    """Close the incident when steps come at the old pace again, as long as it was to be slow."""
    usual = pace_before(attempt, since)
    lately = pace_now(attempt, slowness.seen_at, policy.slow_for)
    if usual is None or lately is None or lately > usual * _slow_from(policy):
        return False
    close(
        turn,
        attempt.number,
        PACE_REGAINED,
        f"It steps at its old pace again: {lately:.2f} s a step, {usual:.2f} s before.",
    )
    return True


def _slow_from(policy: Policy) -> float:
    """Return the factor of a step's time halfway to what counts as slow: neither is in doubt."""
    slow = 1 / (1 - policy.slow_percent / 100)
    return (1 + slow) / 2


def _move_at_checkpoint(
    turn: Turn, attempt: AttemptCase, policy: Policy, verdict: Verdict, since: Instant
) -> None:
    """Restart without the slow node once a checkpoint was completed that is newer than the plan."""
    incident, newest_one = attempt.incident, attempt.progress.best_checkpoint
    incident = (turn.case.attempt(attempt.number) or attempt).incident
    if incident is None:
        return
    if incident.plan is None:
        _plan(turn, attempt, incident, policy, verdict)
        return
    known = incident.plan.checkpoint
    if newest_one is None or (known is not None and newest_one <= known):
        return
    if not is_fresh(turn, attempt, policy):
        attempt = _ask(turn, attempt, policy, since)
        if is_awaited(turn, attempt, policy):
            return
    give_advice(
        turn, attempt.number, verdict, policy, forewarning=forewarning_of(policy, newest_one)
    )


def _plan(
    turn: Turn, attempt: AttemptCase, incident: Incident, policy: Policy, verdict: Verdict
) -> None:
    plan = Plan(made_at=turn.now, checkpoint=attempt.progress.best_checkpoint)
    turn.change(attempt.number, incident=msgspec.structs.replace(incident, plan=plan))
    sentence = plan_at_checkpoint(turn, attempt, policy, verdict, plan.checkpoint)
    turn.tell(attempt.number, Topic.INCIDENT, SLOW_RESTART, sentence)


def _drop_plan(turn: Turn, attempt: AttemptCase) -> None:
    incident = (turn.case.attempt(attempt.number) or attempt).incident
    if incident is None or incident.plan is None:
        return
    turn.change(attempt.number, incident=msgspec.structs.replace(incident, plan=None))
    turn.tell(
        attempt.number,
        Topic.INCIDENT,
        "slow-restart-dropped",
        "Looked at again, no node is surely the slow one: it is not restarted.",
    )
