"""What the controller and people report back about an advice."""

from __future__ import annotations

import msgspec

from relight.engine.cases import AttemptCase, Requeuer
from relight.engine.turns import ImpossibleMove, Turn, close, moved
from relight.model.advice import (
    DISPOSITION_MOVES,
    Advice,
    Approval,
    Disposition,
    Permit,
    ReconciliationStatus,
    StatusReason,
)
from relight.model.audit import Topic
from relight.model.incidents import Phase
from relight.model.instants import later
from relight.model.orders import OrderOutcome, Outcome, Verb
from relight.model.stimuli import PersonSaid, Word
from relight.policy.permits import granted
from relight.policy.policies import Policy

_WORDS = {Outcome.DONE: "done", Outcome.REFUSED: "refused", Outcome.UNCLEAR: "unclear"}


def note_order(turn: Turn, outcome: OrderOutcome) -> None:
    """Take in what became of an order; the same outcome told twice changes nothing."""
    number = outcome.order.attempt.attempt
    attempt = turn.case.attempt(number)
    if attempt is None or outcome in attempt.orders:
        return
    attempt = turn.change(number, orders=(*attempt.orders, outcome)[-50:])
    order = outcome.order
    said = f": {outcome.answer}" if outcome.answer else ""
    turn.tell(
        number,
        Topic.ORDER,
        f"{order.verb}-{outcome.outcome}",
        f"{describe(outcome)} {_WORDS[outcome.outcome]}{said}.",
        key=order.key,
        generation=str(order.generation),
    )
    if order.verb is Verb.REQUEUE and outcome.outcome is not Outcome.REFUSED:
        turn.change(number, requeued_by=Requeuer.RELIGHT)
    if order.verb is Verb.SIGNAL:
        _note_signal(turn, number, outcome)
        return
    incident = attempt.incident
    if incident is not None and incident.phase is Phase.ADVISED and outcome.outcome is Outcome.DONE:
        times = msgspec.structs.replace(incident.times, ordered=outcome.ordered_at)
        turn.change(number, incident=moved(incident, Phase.ACTING, times=times))


def describe(outcome: OrderOutcome) -> str:
    """Return an order in words: what was asked, and of which job."""
    order = outcome.order
    match order.verb:
        case Verb.REQUEUE:
            return f"Order to requeue {order.attempt.job}"
        case Verb.START:
            without = f" without {', '.join(order.exclude)}" if order.exclude else ""
            return f"Order to start {order.attempt.job}{without}"
        case Verb.CANCEL:
            return f"Order to cancel {order.attempt.job}"
        case Verb.SIGNAL:
            return f"Order to send {order.signal or 'a signal'} to {order.attempt.job}"


def _note_signal(turn: Turn, number: int, outcome: OrderOutcome) -> None:
    """Note when a job was forewarned; also a refused signal is not sent again."""
    attempt = turn.case.attempt(number)
    advice = attempt.advice if attempt is not None else None
    if advice is None or advice.forewarning is None or not advice.is_active:
        return
    if outcome.order.generation == advice.generation and advice.forewarning.sent_at is None:
        sent = msgspec.structs.replace(advice.forewarning, sent_at=outcome.answered_at)
        turn.publish(msgspec.structs.replace(advice, forewarning=sent))


def note_status(turn: Turn, number: int, status: ReconciliationStatus) -> None:
    """Take in how far the world has followed an advice.

    A status for another generation, or for an advice that has reached its end, is late and
    changes nothing.
    """
    attempt = turn.case.attempt(number)
    if attempt is None or attempt.advice is None:
        return
    advice = attempt.advice
    if status.generation != advice.generation or not advice.is_active:
        return
    if status.disposition is Disposition.PENDING and status.reason is StatusReason.NO_CAPACITY:
        _exclude_less(turn, advice, status)
        return
    before = advice.status
    turn.publish(msgspec.structs.replace(advice, status=_moved(before, status)))
    if (before.reason, before.sentence) != (status.reason, status.sentence):
        turn.tell(
            number,
            Topic.RECONCILIATION,
            f"{status.disposition}-{status.reason.replace('_', '-')}",
            status.sentence or f"Advice is {status.disposition}.",
        )
    if status.disposition is Disposition.ABANDONED:
        code = f"abandoned-{status.reason.replace('_', '-')}"
        close(turn, number, code, status.sentence, is_told=True)


def withdraw(turn: Turn, number: int, reason: StatusReason, sentence: str) -> None:
    """Abandon the active advice of an attempt, if there is one."""
    attempt = turn.case.attempt(number)
    if attempt is None or attempt.advice is None or not attempt.advice.is_active:
        return
    status = ReconciliationStatus(
        disposition=Disposition.ABANDONED,
        reason=reason,
        sentence=sentence,
        generation=attempt.advice.generation,
        at=turn.now,
    )
    note_status(turn, number, status)


def note_person(turn: Turn, said: PersonSaid) -> None:
    """Take in a person's yes or no to an advice."""
    attempt = turn.case.attempt(said.attempt)
    if attempt is None or attempt.advice is None or not attempt.advice.is_active:
        return
    advice = attempt.advice
    if advice.generation != said.generation or advice.approval is not Approval.WAITING:
        return
    why = f": {said.why}" if said.why else ""
    turn.tell(
        said.attempt, Topic.PERSON, f"person-{said.word}", f"{said.who} said {said.word}{why}."
    )
    match said.word:
        case Word.APPROVE:
            policy = turn.book.policy(advice.policy)
            if policy is None:
                return
            turn.publish(_approved(attempt, advice, policy))
        case Word.REJECT:
            turn.publish(msgspec.structs.replace(advice, approval=Approval.REJECTED))
            withdraw(
                turn,
                said.attempt,
                StatusReason.CHANGED_BY_PERSON,
                f"{said.who} rejected the advice{why}.",
            )


def _approved(attempt: AttemptCase, advice: Advice, policy: Policy) -> Advice:
    """Return an advice that a person agreed to.

    On an attempt that lives its permit comes once that was looked at anew (``leaves``), and the
    time that a signal is given does not run out while it is waited for.
    """
    is_living = attempt.ended_seen_at is None
    permit = None if is_living else permit_for(advice, attempt.fact.partition, policy)
    expires = advice.expires_at
    if expires is not None and advice.forewarning is not None:
        expires = later(expires, advice.forewarning.wait)
    return msgspec.structs.replace(
        advice,
        generation=advice.generation + 1,
        approval=Approval.APPROVED,
        permit=permit,
        expires_at=expires,
    )


def permit_for(advice: Advice, partition: str, policy: Policy) -> Permit:
    """Return leave to act on an advice, for what its policy may do."""
    return Permit(
        cluster=advice.attempt.job.cluster,
        partition=partition,
        policy=policy.name,
        actions=granted(policy),
    )


def _moved(before: ReconciliationStatus, after: ReconciliationStatus) -> ReconciliationStatus:
    if after.disposition is not before.disposition and (
        after.disposition not in DISPOSITION_MOVES[before.disposition]
    ):
        raise ImpossibleMove(
            f"a disposition cannot go from {before.disposition} ({before.sentence}) "
            f"to {after.disposition} ({after.sentence})"
        )
    return after


def _exclude_less(turn: Turn, advice: Advice, status: ReconciliationStatus) -> None:
    """Answer a refusal for capacity: give back the oldest blame, else the weakest suspect."""
    if advice.earlier_exclusions:
        give_back(turn, advice, advice.earlier_exclusions[:1], status.sentence)
    elif advice.exclusions:
        give_back(turn, advice, advice.exclusions[-1:], status.sentence)


def give_back(turn: Turn, advice: Advice, nodes: tuple[str, ...], why: str) -> None:
    """Publish a new generation of an advice that leaves ``nodes`` in again (law 4)."""
    kept = tuple(node for node in advice.exclusions if node not in nodes)
    turn.publish(
        msgspec.structs.replace(
            advice,
            generation=advice.generation + 1,
            exclusions=kept,
            earlier_exclusions=tuple(
                node for node in advice.earlier_exclusions if node not in nodes
            ),
            given_back=(*advice.given_back, *nodes),
            least_exclusions=min(advice.least_exclusions, len(kept)),
            status=ReconciliationStatus(generation=advice.generation + 1),
        )
    )
    turn.tell(
        advice.attempt.attempt,
        Topic.ADVICE,
        "excluded-less",
        f"{', '.join(nodes)} may be used again, because the job does not start without: {why}",
    )
