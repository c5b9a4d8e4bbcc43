"""What will be advised about a living attempt unless something changes: said before it is done.

A plan is an advice of generation 0. Nobody follows it: it tells people what is coming, when at the
latest, and how to prevent it.
"""

from __future__ import annotations

from relight.engine.cases import AttemptCase
from relight.engine.turns import Turn
from relight.engine.witnesses import witnesses_of
from relight.model.advice import Advice, Decision, Mode
from relight.model.findings import Kind
from relight.model.incidents import Incident, Phase
from relight.model.instants import Instant, Span, between, show_span, to_iso
from relight.model.reasons import Reason
from relight.model.verdicts import Verdict
from relight.policy.advising import wants_capacity
from relight.policy.policies import Policy, Response

HANG_UNCONFIRMED, SLOW_RESTART = "hang-unconfirmed", "slow-restart-planned"
_MOMENT = 19
"""Characters of an instant up to its seconds."""


def plan_for_silence(
    turn: Turn, attempt: AttemptCase, policy: Policy, verdict: Verdict, due: Instant
) -> str:
    """Note what follows when a silence that nobody confirms lasts until ``due``; return it told."""
    asked = "no witness confirms it" if witnesses_of(turn, policy) else "nobody can confirm it"
    left = show_span(Span(between(turn.now, due)))
    seen = (
        f"It may hang, but {asked}: it is given {left} more (policy {policy.name}, "
        "hang_unconfirmed). Unless it completes a step,"
    )
    at = f"at {to_iso(due)[:_MOMENT]}Z at the latest"
    if policy.hang is Response.RESTART:
        decision = _restart(verdict)
        sentence = (
            f"{seen} {_what_comes(policy)} {at}{_in_mode(policy)}. To prevent that, suspend it or "
            f'set hang to "report" in policy {policy.name}.'
        )
    else:
        decision, sentence = Decision.NONE, f"{seen} it is told as a hang {at}; nothing is done."
    reason = Reason(code=HANG_UNCONFIRMED, sentence=sentence)
    turn.change(
        attempt.number, planned=_plan(turn, attempt, policy, decision, reason, verdict, due)
    )
    return sentence


def plan_at_checkpoint(
    turn: Turn, attempt: AttemptCase, policy: Policy, verdict: Verdict, after: int | None
) -> str:
    """Note that a slow attempt is moved at its next checkpoint; return it told.

    ``after`` is the step of the newest checkpoint that does not count.
    """
    nodes = ", ".join(one.node for one in verdict.suspects)
    beyond = f" after that of step {after}" if after is not None else ""
    sentence = (
        f"To be restarted without {nodes} at the next completed checkpoint{beyond}, whenever that "
        f"is{_in_mode(policy)}: {verdict.sentence}. To prevent that: let it step at its old pace, "
        f'or set slow to "report" in policy {policy.name}.'
    )
    reason = Reason(code=SLOW_RESTART, sentence=sentence)
    decision = Decision.RESTART_EXCLUDING_NODE
    turn.change(attempt.number, planned=_plan(turn, attempt, policy, decision, reason, verdict))
    return sentence


def is_planned(attempt: AttemptCase) -> bool:
    """Tell whether something is planned for the trouble that an attempt is in now."""
    return plan_of(attempt) is not None


def plan_of(attempt: AttemptCase) -> Advice | None:
    """Return what is planned for an attempt now, None where nothing is or it no longer holds."""
    plan, incident = attempt.planned, attempt.incident
    if plan is None or incident is None or attempt.ended_seen_at is not None:
        return None
    if attempt.advice is not None and attempt.advice.is_active:
        return None
    if incident.opened_at > plan.made_at or incident.phase is Phase.CLOSED:
        return None
    return plan if _holds(plan, incident) else None


def _holds(plan: Advice, incident: Incident) -> bool:
    if incident.kind is Kind.SLOW:
        return plan.reason.code == SLOW_RESTART and incident.plan is not None
    if plan.reason.code != HANG_UNCONFIRMED or incident.phase is not Phase.DIAGNOSED:
        return False
    return incident.stepped_at is None or incident.stepped_at <= plan.made_at


def _restart(verdict: Verdict) -> Decision:
    return Decision.RESTART_EXCLUDING_NODE if wants_capacity(verdict) else Decision.RESTART


def _what_comes(policy: Policy) -> str:
    return "it is restarted" if policy.mode is Mode.ACT else "its restart is advised"


def _in_mode(policy: Policy) -> str:
    match policy.mode:
        case Mode.MONITOR:
            return " (mode monitor: nothing is done)"
        case Mode.APPROVE:
            return " (mode approve: once a person agrees)"
        case Mode.ACT:
            return ""


def _plan(  # noqa: PLR0913, PLR0917 - the parts of an advice
    turn: Turn,
    attempt: AttemptCase,
    policy: Policy,
    decision: Decision,
    reason: Reason,
    verdict: Verdict,
    due: Instant | None = None,
) -> Advice:
    is_excluding = decision is Decision.RESTART_EXCLUDING_NODE
    return Advice(
        attempt=turn.case.key_of(attempt.number),
        generation=0,
        decision=decision,
        mode=policy.mode,
        reason=reason,
        made_at=turn.now,
        exclusions=wants_capacity(verdict) if is_excluding else (),
        not_before=due,
        while_living=True,
        policy=policy.name,
        policy_revision=policy.revision,
    )
