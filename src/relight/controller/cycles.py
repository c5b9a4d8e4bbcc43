"""The controller's cycle: look, tell, ask what is advised, do at most one thing a job."""

from __future__ import annotations

from collections.abc import Callable

from relight.clients.schedulers import Eyes, Hands
from relight.controller.acting import carry_out
from relight.controller.backends import Backend
from relight.controller.isolation import for_each
from relight.controller.observing import Observer
from relight.controller.outbox import Outbox
from relight.controller.reconciling import (
    Act,
    Next,
    Settled,
    Wait,
    is_permitted,
    reconcile,
)
from relight.model.advice import (
    Action,
    Advice,
    Disposition,
    Mode,
    ReconciliationStatus,
    StatusReason,
)
from relight.model.instants import Instant
from relight.model.jobs import JobFact
from relight.model.orders import OrderOutcome, Outcome, Verb
from relight.model.records import Record
from relight.model.seen import Unseen


class Allowance(Record, frozen=True, kw_only=True):
    """What this controller itself may do, whatever a permit says.

    ``policies`` are those that are not in monitor mode now: a permit may be older than that.
    No partition named means any.
    """

    policies: tuple[str, ...]
    actions: tuple[Action, ...] = tuple(Action)
    partitions: tuple[str, ...] = ()


class Cycle(Record, frozen=True, kw_only=True):
    """How one cycle went: what could not be seen, and whether something is under way or done."""

    unseen: tuple[str, ...] = ()
    is_complete: bool = True
    is_busy: bool = False
    has_ordered: bool = False


class Controller:
    """Carries advice out at one cluster. Without hands it only looks and tells (law 3)."""

    def __init__(  # noqa: PLR0913 - its collaborators, each once, from the composition root
        self,
        *,
        cluster: str,
        eyes: Eyes,
        hands: Hands | None,
        backend: Backend,
        outbox: Outbox,
        clock: Callable[[], Instant],
        allowance: Allowance,
    ) -> None:
        self._cluster = cluster
        self._eyes = eyes
        self._hands = hands
        self._backend = backend
        self._outbox = outbox
        self._clock = clock
        self._allowance = allowance
        self._observer = Observer(cluster, eyes)
        self._has_ordered = False

    def cycle(self) -> Cycle:
        """Look once and do what follows from it.

        Where the scheduler does not answer, nothing is done (law 1).
        """
        self._report_results()
        observation, seen = self._observer.look(self._clock())
        self._backend.observe(observation)
        self._observer.accepted(observation, seen)
        if not observation.complete:
            return Cycle(unseen=observation.unseen, is_complete=False)
        self._has_ordered = False
        busy: list[bool] = []
        for_each(
            self._backend.active_advice(self._cluster),
            lambda advice: busy.append(self._follow(advice, seen)),
        )
        return Cycle(unseen=observation.unseen, is_busy=any(busy), has_ordered=self._has_ordered)

    def _report_results(self) -> None:
        for outcome in self._outbox.unreported():
            self._report(outcome)

    def _report(self, outcome: OrderOutcome) -> None:
        self._backend.outcome(outcome)
        self._outbox.record(outcome, reported=True)

    def _follow(self, advice: Advice, seen: dict[str, JobFact]) -> bool:
        """Bring one advice a step on; return whether it is under way and wants a quick look."""
        fact = seen.get(advice.attempt.job.scheduler_id)
        step = self._next(fact, advice)
        if isinstance(step, Act) and fact is not None:
            return self._has_leave(step, advice, fact) and self._act(advice)
        self._tell_next(advice, step)
        is_long = isinstance(step, Wait) and step.is_long
        return advice.permit is not None and not is_long

    def _next(self, fact: JobFact | None, advice: Advice) -> Next:
        past = self._outbox.past_requeue(advice)
        signalled = self._outbox.signalled(advice)
        return reconcile(fact, advice, past, self._clock(), signalled)

    def _has_leave(self, act: Act, advice: Advice, fact: JobFact) -> bool:
        refusal = self._refusal(act, advice, fact.partition)
        if refusal:
            self._tell(advice, Disposition.PENDING, StatusReason.NOT_PERMITTED, refusal)
        return not refusal

    def _refusal(self, act: Act, advice: Advice, partition: str) -> str:
        if self._hands is None:
            return "Monitor mode: this is what would be done; nothing is done."
        if advice.mode is Mode.MONITOR:
            return "This advice was given in monitor mode, so it is not carried out."
        if self._allowance.partitions and partition not in self._allowance.partitions:
            return f"The controller may not act in partition {partition}."
        if advice.policy not in self._allowance.policies:
            return f"Policy {advice.policy} is in monitor mode now: nothing is done."
        if advice.permit is None and advice.while_living:
            return (
                "No leave is given now to end a job that lives: its story tells what is waited for."
            )
        if not is_permitted(act, advice, self._allowance.actions, partition):
            return f"No permit for {', '.join(act.actions)} under policy {advice.policy}."
        return ""

    def _act(self, advice: Advice) -> bool:
        """Look once more at this one job, and give the order if it still follows."""
        look = self._eyes.job(advice.attempt.job.scheduler_id)
        if isinstance(look, Unseen) or self._hands is None:
            return True
        fact = look.value
        step = self._next(fact, advice)
        if fact is None or not isinstance(step, Act):
            self._tell_next(advice, step)
            return True
        if not self._has_leave(step, advice, fact):
            return False
        if self._outbox.is_forgotten(step.order, self._clock()):
            self._tell(
                advice,
                Disposition.ABANDONED,
                StatusReason.AMBIGUOUS,
                "The scheduler did the requeue and has forgotten it, as one does that "
                "lost its state in a crash: look at the job, and requeue it by hand.",
            )
            return False
        refused = self._outbox.refusal(step.order)
        if refused is not None:
            self._tell_refused(advice, refused)
            return False
        if not self._outbox.may_order(step.order, self._clock()):
            waiting = "Ordered already; waiting to see it at the scheduler."
            self._tell(advice, Disposition.PENDING, StatusReason.WAITING, waiting)
            return True
        outcome = carry_out(step.order, self._hands, self._outbox, self._clock)
        self._has_ordered = True
        self._report(outcome)
        if outcome.outcome is Outcome.REFUSED and step.order.verb is not Verb.SIGNAL:
            self._tell_refused(advice, outcome)
        return True

    def _tell_refused(self, advice: Advice, outcome: OrderOutcome) -> None:
        self._tell(
            advice,
            Disposition.ABANDONED,
            StatusReason.SCHEDULER_REFUSED,
            f"The scheduler refused: {outcome.answer}",
        )

    def _tell_next(self, advice: Advice, step: Next) -> None:
        match step:
            case Wait(why=why):
                self._tell(advice, Disposition.PENDING, StatusReason.WAITING, why)
            case Settled(disposition=disposition, reason=reason, sentence=sentence):
                self._tell(advice, disposition, reason, sentence)
            case Act():
                pass

    def _tell(
        self, advice: Advice, disposition: Disposition, reason: StatusReason, sentence: str
    ) -> None:
        before = advice.status
        if (before.disposition, before.reason, before.sentence) == (disposition, reason, sentence):
            return
        self._backend.reconciliation_status(
            advice.attempt,
            ReconciliationStatus(
                disposition=disposition,
                reason=reason,
                sentence=sentence,
                generation=advice.generation,
                at=self._clock(),
            ),
        )
