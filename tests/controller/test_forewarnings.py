"""The signal before a planned restart: sent once, waited after, never more than a warning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.clients.schedulers import Answer
from relight.controller.acting import carry_out
from relight.controller.cycles import Allowance, Controller
from relight.controller.outbox import Outbox
from relight.controller.reconciling import (
    Act,
    Next,
    Past,
    Settled,
    Signalled,
    Wait,
    is_permitted,
    reconcile,
)
from relight.model.advice import (
    Action,
    Advice,
    Decision,
    Forewarning,
    Mode,
    Permit,
    ReconciliationStatus,
)
from relight.model.instants import Instant, Span, later, seconds
from relight.model.jobs import AttemptKey, JobFact, JobState, NodeFact
from relight.model.observations import Observation
from relight.model.orders import OrderOutcome, Outcome, Verb
from relight.model.reasons import Reason
from relight.model.seen import Seen, Unseen
from relight.testing.stories import KEY, START, fact

NOW = later(START, seconds(600))
AHEAD = Forewarning(name="USR1", wait=seconds(120), checkpoint=100)
PERMIT = Permit(cluster="main", partition="train", policy="default", actions=tuple(Action))
ADVICE = Advice(
    attempt=AttemptKey(job=KEY, attempt=0),
    generation=1,
    decision=Decision.RESTART_EXCLUDING_NODE,
    mode=Mode.ACT,
    reason=Reason(code="restart-excluding-node", sentence="Restart without node-02."),
    made_at=START,
    exclusions=("node-02",),
    permit=PERMIT,
    policy="default",
    while_living=True,
    forewarning=AHEAD,
    status=ReconciliationStatus(generation=1),
)
RUNNING = fact(JobState.RUNNING)


def ahead(**fields: object) -> Advice:
    return msgspec.structs.replace(
        ADVICE, forewarning=msgspec.structs.replace(AHEAD, **fields), generation=1
    )


def sent(ago: float, *, is_refused: bool = False) -> Signalled:
    return Signalled(at=Instant(NOW - seconds(ago)), is_refused=is_refused)


def summed(step: Next) -> str:
    match step:
        case Act(order=order):
            return order.verb
        case Wait():
            return "wait"
        case Settled(disposition=disposition, reason=reason):
            return f"{disposition} {reason}"


@pytest.mark.parametrize(
    ("advice", "signalled", "expected"),
    [
        (ADVICE, None, "signal"),
        (ADVICE, sent(0), "wait"),
        (ADVICE, sent(119), "wait"),
        (ADVICE, sent(120), "requeue"),
        (ADVICE, sent(0, is_refused=True), "requeue"),
        (ahead(sent_at=NOW), None, "wait"),
        (ahead(sent_at=Instant(NOW - seconds(121))), None, "requeue"),
        (ahead(sent_at=NOW, is_heeded=True), sent(1), "requeue"),
        (ahead(sent_at=NOW, is_heeded=True), None, "requeue"),
        (msgspec.structs.replace(ADVICE, forewarning=None), None, "requeue"),
        (msgspec.structs.replace(ADVICE, while_living=False), None, "wait"),
    ],
)
def test_what_comes_before_the_requeue_of_a_running_job(
    advice: Advice, signalled: Signalled | None, expected: str
) -> None:
    assert summed(reconcile(RUNNING, advice, Past.NEVER, NOW, signalled)) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (JobState.FAILED, "requeue"),
        (JobState.NODE_FAIL, "requeue"),
        (JobState.COMPLETED, "abandoned superseded"),
        (JobState.CANCELLED, "abandoned changed_by_person"),
        (JobState.COMPLETING, "wait"),
        (JobState.SUSPENDED, "wait"),
        (JobState.PENDING, "wait"),
    ],
)
def test_only_a_running_job_is_signalled(state: JobState, expected: str) -> None:
    assert summed(reconcile(fact(state), ADVICE, Past.NEVER, NOW)) == expected


def test_a_job_that_another_follows_is_not_even_signalled() -> None:
    there = fact(JobState.RUNNING, successors=("8",))
    assert summed(reconcile(there, ADVICE, Past.NEVER, NOW)) == "abandoned successor_exists"


def test_once_the_requeue_was_asked_for_there_is_no_more_warning() -> None:
    assert summed(reconcile(RUNNING, ADVICE, Past.ORDERED, NOW)) == "requeue"


def test_a_signal_needs_leave_for_the_whole_restart_and_for_itself() -> None:
    step = reconcile(RUNNING, ADVICE, Past.NEVER, NOW)
    assert isinstance(step, Act)
    assert step.actions == (Action.REQUEUE, Action.EXCLUDE, Action.SIGNAL)
    assert is_permitted(step, ADVICE, tuple(Action), "train")
    for lacking in step.actions:
        actions = tuple(one for one in Action if one is not lacking)
        assert not is_permitted(step, ADVICE, actions, "train")


def test_the_key_of_a_signal_is_its_name_its_scope_and_the_generation() -> None:
    keys = set()
    for advice in (ADVICE, ahead(batch_only=True), msgspec.structs.replace(ADVICE, generation=2)):
        step = reconcile(RUNNING, advice, Past.NEVER, NOW)
        assert isinstance(step, Act)
        assert step.order.verb is Verb.SIGNAL
        keys.add(step.order.key)
    assert len(keys) == 3


@given(
    state=st.sampled_from(JobState),
    decision=st.sampled_from(Decision),
    sent_ago=st.none() | st.integers(0, 500),
    told_ago=st.none() | st.integers(0, 500),
    is_refused=st.booleans(),
    is_heeded=st.booleans(),
    past=st.sampled_from(Past),
)
def test_a_warned_job_is_requeued_only_after_its_time_or_its_checkpoint(  # noqa: PLR0913 - one argument a thing that varies
    *,
    state: JobState,
    decision: Decision,
    sent_ago: int | None,
    told_ago: int | None,
    is_refused: bool,
    is_heeded: bool,
    past: Past,
) -> None:
    told = None if told_ago is None else Instant(NOW - seconds(told_ago))
    advice = msgspec.structs.replace(ahead(sent_at=told, is_heeded=is_heeded), decision=decision)
    signalled = None if sent_ago is None else sent(sent_ago, is_refused=is_refused)
    step = reconcile(fact(state), advice, past, NOW, signalled)
    if not isinstance(step, Act) or state is not JobState.RUNNING or past is not Past.NEVER:
        return
    if step.order.verb is Verb.SIGNAL:
        assert sent_ago is None
        assert told_ago is None
    if step.order.verb is Verb.REQUEUE:
        was_sent = [ago for ago in (told_ago, sent_ago) if ago is not None]
        refused = signalled is not None and is_refused
        assert was_sent
        assert is_heeded or refused or was_sent[0] >= 120


@pytest.mark.parametrize(("wait", "expected"), [(300, "wait"), (0, "requeue"), (-5, "requeue")])
def test_a_living_job_on_hold_is_given_its_time_to_go_on(wait: float, expected: str) -> None:
    held = msgspec.structs.replace(
        ADVICE,
        decision=Decision.HOLD,
        exclusions=(),
        forewarning=None,
        not_before=later(NOW, seconds(wait)),
    )
    assert summed(reconcile(RUNNING, held, Past.NEVER, NOW)) == expected
    ended = reconcile(fact(JobState.FAILED), held, Past.NEVER, NOW)
    assert summed(ended) == "requeue", "a job that has ended is requeued, and starts when due"


@dataclass
class Scheduler:
    """Eyes and hands of a scheduler with one running job, which ends when it is requeued."""

    state: JobState = JobState.RUNNING
    attempt: int = 0
    script: list[Answer] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def jobs(self) -> Seen[tuple[JobFact, ...]] | Unseen:
        """Return the one job."""
        return Seen((fact(self.state, self.attempt),))

    def job(self, scheduler_id: str) -> Seen[JobFact | None] | Unseen:
        """Return the one job."""
        del scheduler_id
        return Seen(fact(self.state, self.attempt))

    def nodes(self) -> Seen[tuple[NodeFact, ...]] | Unseen:
        """Return no nodes."""
        return Seen(())

    def requeue(self, scheduler_id: str, *, incomplete_only: bool) -> Answer:
        """End the attempt."""
        del scheduler_id
        assert incomplete_only
        self.state, self.attempt = JobState.COMPLETING, 1
        return self._answer("requeue")

    def start(
        self, scheduler_id: str, *, note: str, exclude: tuple[str, ...], delay: Span | None
    ) -> Answer:
        """Take the order."""
        del scheduler_id, note, exclude, delay
        return self._answer("start")

    def cancel(self, scheduler_id: str) -> Answer:
        """Take the order."""
        del scheduler_id
        return self._answer("cancel")

    def signal(self, scheduler_id: str, *, name: str, batch_only: bool) -> Answer:
        """Take the order; the job runs on."""
        del scheduler_id, batch_only
        return self._answer(f"signal {name}")

    def _answer(self, verb: str) -> Answer:
        self.asked.append(verb)
        return self.script.pop(0) if self.script else Answer(Outcome.DONE, "")


@dataclass
class OneAdvice:
    """A backend with the one advice."""

    advice: Advice = ADVICE
    outcomes: list[OrderOutcome] = field(default_factory=list)

    def observe(self, observation: Observation) -> None:
        """Take in an observation."""

    def active_advice(self, cluster: str) -> tuple[Advice, ...]:
        """Return it while it is active."""
        del cluster
        return (self.advice,) if self.advice.is_active else ()

    def reconciliation_status(self, attempt: AttemptKey, status: ReconciliationStatus) -> None:
        """Take in a status."""
        del attempt
        self.advice = msgspec.structs.replace(self.advice, status=status)

    def outcome(self, outcome: OrderOutcome) -> None:
        """Take in an outcome."""
        self.outcomes.append(outcome)


@dataclass
class Stage:
    """A controller over the two, with a clock."""

    path: Path
    scheduler: Scheduler = field(default_factory=Scheduler)
    backend: OneAdvice = field(default_factory=OneAdvice)
    now: Instant = NOW

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin a new life over the same outbox."""
        self.outbox = Outbox(self.path)
        self.controller = Controller(
            cluster="main",
            eyes=self.scheduler,
            hands=self.scheduler,
            backend=self.backend,
            outbox=self.outbox,
            clock=lambda: self.now,
            allowance=Allowance(policies=("default",)),
        )

    def cycle(self, count: int, every: float = 1.0) -> None:
        """Do cycles, letting time pass after each."""
        for _ in range(count):
            self.controller.cycle()
            self.now = later(self.now, seconds(every))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    built = Stage(tmp_path / "outbox.jsonl")
    yield built
    built.outbox.close()


def test_the_signal_is_sent_once_and_the_requeue_follows_after_its_time(stage: Stage) -> None:
    stage.cycle(120)
    assert stage.scheduler.asked == ["signal USR1"]
    stage.cycle(5)
    assert stage.scheduler.asked == ["signal USR1", "requeue"]
    assert [one.order.verb for one in stage.backend.outcomes] == [Verb.SIGNAL, Verb.REQUEUE]


def test_a_job_that_is_given_time_is_looked_at_no_oftener_than_any(stage: Stage) -> None:
    assert stage.controller.cycle().is_busy
    assert not stage.controller.cycle().is_busy


def test_a_refused_signal_delays_nothing_and_abandons_nothing(stage: Stage) -> None:
    stage.scheduler.script = [Answer(Outcome.REFUSED, "Invalid job id specified")]
    stage.cycle(3)
    assert stage.scheduler.asked == ["signal USR1", "requeue"]
    assert stage.backend.advice.is_active


def test_a_signal_that_was_not_answered_is_never_repeated(stage: Stage) -> None:
    stage.scheduler.script = [Answer(Outcome.UNCLEAR, "timed out")]
    stage.cycle(123)
    assert stage.scheduler.asked == ["signal USR1", "requeue"]


def test_a_controller_that_died_on_the_signal_does_not_send_it_again(stage: Stage) -> None:
    step = reconcile(RUNNING, ADVICE, Past.NEVER, NOW)
    assert isinstance(step, Act)
    stage.outbox.intend(step.order, NOW)
    stage.outbox.close()
    stage.restart()
    stage.cycle(119)
    assert stage.scheduler.asked == []
    stage.cycle(3)
    assert stage.scheduler.asked == ["requeue"]


def test_a_lost_outbox_does_not_send_a_signal_that_the_core_knows_of(stage: Stage) -> None:
    stage.backend.advice = ahead(sent_at=NOW)
    stage.cycle(122)
    assert stage.scheduler.asked == ["requeue"]


def test_a_job_that_dies_of_the_signal_is_requeued_at_once(stage: Stage) -> None:
    stage.cycle(2)
    step = reconcile(fact(JobState.FAILED), ADVICE, Past.NEVER, stage.now, sent(0))
    assert summed(step) == "requeue"


def test_the_order_carries_name_and_scope_to_the_hands(stage: Stage) -> None:
    step = reconcile(RUNNING, ahead(batch_only=True, name="TERM"), Past.NEVER, NOW)
    assert isinstance(step, Act)
    assert (step.order.signal, step.order.batch_only) == ("TERM", True)
    carry_out(step.order, stage.scheduler, stage.outbox, lambda: NOW)
    assert stage.scheduler.asked == ["signal TERM"]
