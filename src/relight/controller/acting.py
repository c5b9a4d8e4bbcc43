"""One order to the scheduler: written down before, looked at before, recorded after."""

from __future__ import annotations

from collections.abc import Callable

from relight.clients.schedulers import Answer, Hands
from relight.controller.outbox import Outbox
from relight.model.instants import Instant, Span
from relight.model.orders import Order, OrderOutcome, Verb


def carry_out(
    order: Order, hands: Hands, outbox: Outbox, clock: Callable[[], Instant]
) -> OrderOutcome:
    """Give one order and return what became of it.

    The intent is on the disk before the scheduler is asked. A crash between the two leaves
    an intent without result, which the next look resolves.

    Raises:
        OSError: the intent could not be written; the scheduler was not asked.

    """
    ordered_at = clock()
    outbox.intend(order, ordered_at)
    answer = _ask(order, hands, ordered_at)
    outcome = OrderOutcome(
        order=order,
        outcome=answer.outcome,
        answer=answer.text,
        ordered_at=ordered_at,
        answered_at=clock(),
    )
    outbox.record(outcome, reported=False)
    return outcome


def _ask(order: Order, hands: Hands, now: Instant) -> Answer:
    scheduler_id = order.attempt.job.scheduler_id
    match order.verb:
        case Verb.REQUEUE:
            return hands.requeue(scheduler_id, incomplete_only=order.incomplete_only)
        case Verb.START:
            delay = None if order.start_at is None else Span(max(0, order.start_at - now))
            return hands.start(scheduler_id, note=order.note, exclude=order.exclude, delay=delay)
        case Verb.CANCEL:
            return hands.cancel(scheduler_id)
        case Verb.SIGNAL:
            return hands.signal(scheduler_id, name=order.signal, batch_only=order.batch_only)
