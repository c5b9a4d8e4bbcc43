"""A verdict becomes advice, and advice is kept until it is followed, changed or expired."""

from __future__ import annotations

import msgspec

from relight.engine.attributing import taken_up
from relight.engine.cases import AttemptCase, Requeuer, Restarts
from relight.engine.outcomes import give_back, permit_for, withdraw
from relight.engine.turns import Turn, close, moved
from relight.engine.witnesses import is_testimony
from relight.model.advice import (
    Advice,
    Approval,
    CostEstimate,
    Decision,
    Disposition,
    Forewarning,
    Mode,
    ReconciliationStatus,
    StatusReason,
)
from relight.model.audit import Topic
from relight.model.findings import Domain
from relight.model.incidents import Phase
from relight.model.instants import between, later, seconds, show_span
from relight.model.jobs import WAITING, JobFact
from relight.model.questions import CapacityAsked
from relight.model.reasons import Reason
from relight.model.verdicts import Verdict
from relight.policy.advising import (
    Circumstances,
    Past,
    Ruling,
    advise,
    allowed_restarts,
    used_restarts,
    wants_capacity,
)
from relight.policy.living import REPORTED
from relight.policy.permits import actions_needed
from relight.policy.policies import Policy

CAPACITY_PATIENCE = seconds(10)
"""How long an answer about capacity is waited for before it counts as unknown."""

_PLANNED = frozenset({Decision.RESTART, Decision.RESTART_EXCLUDING_NODE})
_RESTARTS = frozenset({Decision.RESTART, Decision.RESTART_EXCLUDING_NODE, Decision.HOLD})


def give_advice(  # noqa: PLR0913 - what it is about, and the two things that living attempts add
    turn: Turn,
    number: int,
    verdict: Verdict,
    policy: Policy,
    *,
    ruling: Ruling | None = None,
    forewarning: Forewarning | None = None,
) -> None:
    """Publish the advice for an attempt, unless an answer about capacity is waited for.

    ``ruling`` stands where the policy for a living attempt has settled it already. A
    ``forewarning`` is sent only before a restart.
    """
    attempt = turn.case.attempt(number)
    if attempt is None:
        return
    basis = basis_of(attempt, verdict, policy)
    if ruling is None:
        verdict = taken_up(attempt, verdict, policy)
        if not _knows_capacity(turn, verdict):
            return
        ruling = _ruling(turn, attempt, verdict, policy)
    before = attempt.advice
    if before is not None and before.is_active and _says_the_same(before, attempt, ruling):
        turn.publish(msgspec.structs.replace(before, rests_on=basis))
        return
    advice = _advice(turn, attempt, ruling, policy, basis)
    if forewarning is not None and ruling.decision in _PLANNED:
        expires = later(advice.expires_at or turn.now, forewarning.wait)
        advice = msgspec.structs.replace(advice, forewarning=forewarning, expires_at=expires)
    turn.publish(advice)
    if advice.is_active and advice.expires_at is not None:
        turn.wake(advice.expires_at)
    turn.tell(
        number,
        Topic.ADVICE,
        ruling.reason.code,
        ruling.reason.sentence,
        decision=ruling.decision,
        mode=policy.mode,
        exclusions=", ".join(advice.exclusions),
        generation=str(advice.generation),
        permit="granted" if advice.permit else "none",
    )
    _move_incident(turn, number, advice)


def basis_of(attempt: AttemptCase, verdict: Verdict, policy: Policy) -> str:
    """Return what an advice rests on: the verdict's revision, and whom an outside service adds."""
    added = taken_up(attempt, verdict, policy)
    nodes = "" if added == verdict else ",".join(one.node for one in added.suspects)
    known = attempt.incident.verdict if attempt.incident is not None else None
    revision = (known or verdict).revision
    return f"{revision}+{nodes}" if nodes else str(revision)


def revise_advice(turn: Turn, attempt: AttemptCase, policy: Policy) -> None:
    """Give advice anew where its grounds have changed and nothing was ordered or agreed yet."""
    advice, incident = attempt.advice, attempt.incident
    if advice is None or not advice.is_active or attempt.orders_given or not advice.rests_on:
        return
    if incident is None or incident.verdict is None or advice.approval is Approval.APPROVED:
        return
    if advice.given_back or advice.forewarning is not None:
        return  # what was decided on the way is not undone by older grounds
    if advice.rests_on != basis_of(attempt, incident.verdict, policy):
        give_advice(turn, attempt.number, incident.verdict, policy)


def _says_the_same(advice: Advice, attempt: AttemptCase, ruling: Ruling) -> bool:
    is_living = attempt.ended_seen_at is None
    was, now = (advice.decision, advice.exclusions), (ruling.decision, ruling.exclusions)
    return was == now and advice.while_living is is_living


def keep_advice(turn: Turn, attempt: AttemptCase) -> None:
    """End an active advice whose time is over or whose job is gone."""
    advice = attempt.advice
    if advice is None:
        return
    if turn.case.is_gone:
        withdraw(
            turn, attempt.number, StatusReason.JOB_GONE, "The scheduler no longer knows the job."
        )
        return
    _note_heeded(turn, attempt, advice)
    if advice.expires_at is None:
        return
    if turn.now >= advice.expires_at:
        following = turn.case.attempt(attempt.number + 1)
        if advice.ours and following is not None and following.fact.state in WAITING:
            _stop_excluding(turn, advice)
            return
        what = (
            "nobody approved it" if advice.approval is Approval.WAITING else "it was not followed"
        )
        withdraw(
            turn,
            attempt.number,
            StatusReason.ADVICE_EXPIRED,
            f"The advice expired: {what} in time (policy {advice.policy}, expires).",
        )
        return
    turn.wake(advice.expires_at)


def _note_heeded(turn: Turn, attempt: AttemptCase, advice: Advice) -> None:
    """Note that a job which was sent a signal has completed a newer checkpoint since."""
    sent, newest = advice.forewarning, attempt.progress.best_checkpoint
    if sent is None or sent.sent_at is None or sent.is_heeded or newest is None:
        return
    if sent.checkpoint is None or newest > sent.checkpoint:
        heeded = msgspec.structs.replace(sent, is_heeded=True)
        turn.publish(msgspec.structs.replace(advice, forewarning=heeded))
        turn.tell(
            attempt.number,
            Topic.ADVICE,
            "signal-heeded",
            f"After the signal the checkpoint of step {newest} was completed: restart now.",
        )


def _stop_excluding(turn: Turn, advice: Advice) -> None:
    """Give every exclusion back when a job has waited too long with them (law 4)."""
    patience = between(advice.made_at, turn.now)
    give_back(turn, advice, advice.ours, f"it has waited for {show_span(patience)}.")
    attempt = turn.case.attempt(advice.attempt.attempt)
    if attempt is not None and attempt.advice is not None:
        expires = later(turn.now, patience)
        turn.publish(msgspec.structs.replace(attempt.advice, expires_at=expires))
        turn.wake(expires)


def _knows_capacity(turn: Turn, verdict: Verdict) -> bool:
    wanted = wants_capacity(verdict)
    case = turn.case
    if not wanted or (case.capacity is not None and case.capacity.without == wanted):
        return True
    if case.asked_without == wanted and case.asked_at is not None:
        deadline = later(case.asked_at, CAPACITY_PATIENCE)
        if turn.now >= deadline:
            return True
        turn.wake(deadline)
        return False
    turn.case = msgspec.structs.replace(case, asked_without=wanted, asked_at=turn.now)
    turn.questions.append(CapacityAsked(job=case.key, without=wanted))
    turn.wake(later(turn.now, CAPACITY_PATIENCE))
    return False


def _ruling(turn: Turn, attempt: AttemptCase, verdict: Verdict, policy: Policy) -> Ruling:
    if attempt.requeued_by is Requeuer.PERSON:
        sentence = (
            "Requeued already, by a person or by a rule of Slurm's own (RequeueExit, say). "
            f"What happened: {verdict.sentence}."
        )
        return Ruling(
            decision=Decision.NONE, reason=Reason(code="requeued-by-person", sentence=sentence)
        )
    case = turn.case
    history = tuple(_past(turn, one) for one in case.attempts if one.number < attempt.number)
    gained = _gained(turn, attempt)
    _note_restarts(turn, attempt, policy, history, gained=gained)
    wanted = wants_capacity(verdict)
    known = case.capacity if case.capacity and case.capacity.without == wanted else None
    fact = attempt.fact
    return advise(
        verdict,
        policy,
        Circumstances(
            nodes=attempt.allocation.nodes,
            gained=gained,
            history=history,
            successors=case.successors,
            requeue_allowed=fact.requeue_allowed,
            is_batch=fact.is_batch,
            max_restarts=case.choice.max_restarts,
            expected_nodes=fact.expected_nodes or len(attempt.allocation.nodes),
            required_nodes=fact.required_nodes,
            fit_now=known.fit_now if known else None,
            fit_ever=known.fit_ever if known else None,
        ),
    )


def _note_restarts(
    turn: Turn, attempt: AttemptCase, policy: Policy, history: tuple[Past, ...], *, gained: bool
) -> None:
    """Note how many restarts are used and allowed as this advice is given, for people to see."""
    allowed = allowed_restarts(policy, turn.case.choice.max_restarts)
    used = 0 if gained else used_restarts(history)
    turn.change(attempt.number, restarts=Restarts(used=used, allowed=allowed))


def _gained(turn: Turn, attempt: AttemptCase) -> bool:
    """Tell whether an attempt went beyond all before it. The first one has nothing to beat."""
    before = [one for one in turn.case.attempts if one.number < attempt.number]
    if not before:
        return False
    progress = attempt.progress
    return _is_beyond(progress.best_step, [one.progress.best_step for one in before]) or _is_beyond(
        progress.best_checkpoint, [one.progress.best_checkpoint for one in before]
    )


def _is_beyond(count: int | None, before: list[int | None]) -> bool:
    return count is not None and all(other is None or count > other for other in before)


def _past(turn: Turn, attempt: AttemptCase) -> Past:
    verdict = attempt.incident.verdict if attempt.incident else None
    advice = attempt.advice
    return Past(
        number=attempt.number,
        fingerprint=verdict.fingerprint if verdict else "",
        cause=verdict.cause if verdict else "",
        blamed=_blamed(verdict),
        nodes=attempt.allocation.nodes,
        gained=_gained(turn, attempt),
        restarted=attempt.requeued_by is Requeuer.RELIGHT
        or (advice is not None and advice.decision in _RESTARTS and advice.already_requeued),
    )


def _blamed(verdict: Verdict | None) -> tuple[str, ...]:
    if verdict is None or verdict.domain is not Domain.HARDWARE:
        return ()
    return tuple(one.node for one in verdict.suspects)


def _advice(turn: Turn, attempt: AttemptCase, ruling: Ruling, policy: Policy, basis: str) -> Advice:
    is_living = attempt.ended_seen_at is None
    is_requeued = turn.case.attempt(attempt.number + 1) is not None
    needed = actions_needed(ruling, is_living=is_living, is_requeued=is_requeued)
    allowed = all(action in policy.may for action in needed)
    generation = attempt.advice.generation + 1 if attempt.advice is not None else 1
    earlier = _earlier_exclusions(turn, attempt, ruling)
    withdrawn = earlier if _failed_alike_without(turn, attempt, earlier) else ()
    idle = ReconciliationStatus(
        disposition=Disposition.CONVERGED,
        reason=StatusReason.ALREADY_SATISFIED,
        sentence="Nothing has to be done at the scheduler.",
        generation=generation,
        at=turn.now,
    )
    advice = Advice(
        attempt=turn.case.key_of(attempt.number),
        generation=generation,
        decision=ruling.decision,
        mode=policy.mode,
        reason=_reason_within(ruling, policy, allowed=allowed),
        made_at=turn.now,
        exclusions=ruling.exclusions,
        least_exclusions=ruling.least_exclusions,
        earlier_exclusions=tuple(node for node in earlier if node not in withdrawn),
        given_back=withdrawn,
        not_before=later(turn.now, ruling.wait) if ruling.wait else None,
        expires_at=later(later(turn.now, policy.expires), ruling.wait),
        while_living=is_living,
        already_requeued=is_requeued,
        rests_on=basis,
        policy=policy.name,
        policy_revision=policy.revision,
        cost=_cost(attempt),
        status=ReconciliationStatus(generation=generation) if needed else idle,
    )
    if not needed or not allowed or policy.mode is Mode.MONITOR:
        return advice
    if policy.mode is Mode.APPROVE:
        return msgspec.structs.replace(advice, approval=Approval.WAITING)
    permit = permit_for(advice, attempt.fact.partition, policy)
    return msgspec.structs.replace(advice, permit=permit)


def _earlier_exclusions(turn: Turn, attempt: AttemptCase, ruling: Ruling) -> tuple[str, ...]:
    """Return the nodes that relight left out for earlier attempts and that still are left out."""
    out: dict[str, None] = {}
    for one in turn.case.attempts:
        if one.number >= attempt.number or one.advice is None or not one.orders_given:
            continue
        out.update(dict.fromkeys(one.advice.exclusions))
        for node in one.advice.given_back:
            out.pop(node, None)
    return tuple(node for node in out if node not in ruling.exclusions)


def _failed_alike_without(turn: Turn, attempt: AttemptCase, earlier: tuple[str, ...]) -> bool:
    """Tell whether this attempt failed as the one before, though the nodes were left out.

    Then the blame did not survive its test, and they are given back (law 13). That a witness
    now names another node tells nothing of them: each has failed.
    """
    before = turn.case.attempt(attempt.number - 1)
    if not earlier or before is None or before.incident is None or attempt.incident is None:
        return False
    one, other = before.incident.verdict, attempt.incident.verdict
    if one is None or other is None or _is_witnessed(attempt, other):
        return False
    return (one.fingerprint, one.cause) == (other.fingerprint, other.cause)


def _is_witnessed(attempt: AttemptCase, verdict: Verdict) -> bool:
    """Tell whether somebody beside the log's lines names the nodes that a verdict blames."""
    root = next((one for one in attempt.findings if one.id == verdict.root), None)
    return bool(verdict.suspects) and root is not None and is_testimony(root)


def _reason_within(ruling: Ruling, policy: Policy, *, allowed: bool) -> Reason:
    if allowed:
        return ruling.reason
    may = ", ".join(policy.may) or "nothing"
    sentence = f"{ruling.reason.sentence} Policy {policy.name} may only: {may}."
    return Reason(code=ruling.reason.code, sentence=sentence)


def _cost(attempt: AttemptCase) -> CostEstimate | None:
    progress = attempt.progress
    if progress.best_step is None:
        return None
    lost = max(0, progress.best_step - (progress.best_checkpoint or progress.resumed_from or 0))
    return CostEstimate(
        steps_lost=lost, gpu_hours_lost=_gpu_hours(lost, progress.step_seconds, attempt.fact)
    )


def _gpu_hours(steps: int, step_seconds: float | None, fact: JobFact) -> float | None:
    gpus = fact.gpus_per_node * len(fact.nodes)
    if not gpus or step_seconds is None:
        return None
    return round(steps * step_seconds * gpus / 3600, 2)


def _move_incident(turn: Turn, number: int, advice: Advice) -> None:
    attempt = turn.case.attempt(number)
    if attempt is None or attempt.incident is None:
        return
    incident = attempt.incident
    if incident.phase not in (Phase.DIAGNOSED, Phase.ADVISED):
        return  # the job went on without waiting for the advice
    times = msgspec.structs.replace(
        incident.times,
        advised=turn.now,
        settled=turn.now if advice.while_living else incident.times.settled,
    )
    turn.change(number, incident=moved(incident, Phase.ADVISED, times=times))
    if not advice.is_active and advice.reason.code not in REPORTED:
        close(turn, number, advice.reason.code, advice.reason.sentence, is_told=True)
