"""The controller's cycle against a scripted scheduler and a backend that can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from relight.clients.schedulers import Answer
from relight.controller.cycles import Allowance, Controller, Cycle
from relight.controller.notes import write_note
from relight.controller.outbox import REPEAT_AFTER, Outbox
from relight.model.advice import (
    Action,
    Advice,
    Decision,
    Disposition,
    Mode,
    Permit,
    ReconciliationStatus,
    StatusReason,
)
from relight.model.instants import Instant, Span, later, seconds
from relight.model.jobs import AttemptKey, Holder, JobFact, JobState, NodeFact
from relight.model.observations import Observation
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.reasons import Reason
from relight.model.seen import Seen, Unseen
from relight.testing.stories import START, fact

BEGIN = later(START, seconds(60))
DONE = Answer(Outcome.DONE, "")
ALLOWED = Allowance(policies=("default",))
PERMIT = Permit(cluster="main", partition="train", policy="default", actions=tuple(Action))


def advice(job: str = "7", **fields: object) -> Advice:
    base = Advice(
        attempt=AttemptKey.parse(f"main:{job}-0"),
        generation=1,
        decision=Decision.RESTART_EXCLUDING_NODE,
        mode=Mode.ACT,
        reason=Reason(code="restart-excluding-node", sentence="Restart without node-02."),
        made_at=START,
        exclusions=("node-02",),
        permit=PERMIT,
        policy="default",
        status=ReconciliationStatus(generation=1),
    )
    return msgspec.structs.replace(base, **fields)


def failed(job: str = "7", **fields: object) -> JobFact:
    return fact(JobState.FAILED, 0, scheduler_id=job, **fields)


def waiting(job: str = "7", **fields: object) -> JobFact:
    return fact(JobState.PENDING, attempt=1, scheduler_id=job, **fields)


@dataclass
class Scheduler:
    """Eyes and hands of a scheduler that does as it is told, or says what it is scripted to.

    ``second`` is what the look at a single job sees instead; ``script`` are answers to the
    next orders, and an order that is not done changes nothing.
    """

    facts: dict[str, JobFact]
    second: dict[str, Seen[JobFact | None] | Unseen] = field(default_factory=dict)
    script: list[Answer] = field(default_factory=list)
    is_dumb: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)
    looks: list[str] = field(default_factory=list)

    def jobs(self) -> Seen[tuple[JobFact, ...]] | Unseen:
        """Return every job, or nothing while the scheduler does not answer."""
        self.looks.append("*")
        return Unseen("squeue timed out") if self.is_dumb else Seen(tuple(self.facts.values()))

    def job(self, scheduler_id: str) -> Seen[JobFact | None] | Unseen:
        """Return one job as the second look sees it."""
        self.looks.append(scheduler_id)
        return self.second.get(scheduler_id) or Seen(self.facts.get(scheduler_id))

    def nodes(self) -> Seen[tuple[NodeFact, ...]] | Unseen:
        """Return no nodes."""
        return Seen(())

    def requeue(self, scheduler_id: str, *, incomplete_only: bool) -> Answer:
        """Put a job back into the queue."""
        del incomplete_only
        return self._do(scheduler_id, "requeue", waiting(scheduler_id))

    def start(
        self, scheduler_id: str, *, note: str, exclude: tuple[str, ...], delay: Span | None
    ) -> Answer:
        """Start a waiting job on other nodes."""
        del delay
        started = fact(
            JobState.RUNNING,
            1,
            scheduler_id=scheduler_id,
            note=note,
            nodes=("node-01", "node-03"),
            excluded_nodes=exclude,
        )
        return self._do(scheduler_id, "start", started)

    def cancel(self, scheduler_id: str) -> Answer:
        """Cancel a job."""
        return self._do(scheduler_id, "cancel", fact(JobState.CANCELLED, scheduler_id=scheduler_id))

    def signal(self, scheduler_id: str, *, name: str, batch_only: bool) -> Answer:
        """Send a signal; the job goes on running."""
        self.asked.append((scheduler_id, f"signal {'B:' if batch_only else ''}{name}"))
        return self.script.pop(0) if self.script else DONE

    def _do(self, scheduler_id: str, verb: str, becomes: JobFact) -> Answer:
        self.asked.append((scheduler_id, verb))
        answer = self.script.pop(0) if self.script else DONE
        if answer.outcome is Outcome.DONE:
            self.facts[scheduler_id] = becomes
        return answer


class Unreachable(Exception):  # noqa: N818 - it names what happened
    """The backend does not answer."""


@dataclass
class ScriptedBackend:
    """A backend that holds the advice it is given and fails in the calls named in ``fails``."""

    advice: list[Advice]
    fails: set[str] = field(default_factory=set)
    observations: list[Observation] = field(default_factory=list)
    statuses: list[tuple[str, ReconciliationStatus]] = field(default_factory=list)
    outcomes: list[OrderOutcome] = field(default_factory=list)
    times_asked: int = 0

    def observe(self, observation: Observation) -> None:
        """Take in an observation."""
        self._maybe_fail("observe")
        self.observations.append(observation)

    def active_advice(self, cluster: str) -> tuple[Advice, ...]:
        """Return the advice that is still pending."""
        self.times_asked += 1
        self._maybe_fail("advice")
        return tuple(
            one for one in self.advice if one.is_active and one.attempt.job.cluster == cluster
        )

    def reconciliation_status(self, attempt: AttemptKey, status: ReconciliationStatus) -> None:
        """Take in a status, and make it the advice's own."""
        self._maybe_fail("status")
        self.statuses.append((attempt.job.scheduler_id, status))
        self.advice = [
            msgspec.structs.replace(one, status=status) if one.attempt == attempt else one
            for one in self.advice
        ]

    def outcome(self, outcome: OrderOutcome) -> None:
        """Take in what became of an order."""
        self._maybe_fail("outcome")
        self.outcomes.append(outcome)

    def told(self, job: str = "7") -> tuple[Disposition, StatusReason]:
        """Return where the advice on a job has come to, as last told."""
        last = [status for name, status in self.statuses if name == job][-1]
        return last.disposition, last.reason

    def _maybe_fail(self, call: str) -> None:
        if call in self.fails:
            raise Unreachable(call)


@dataclass
class Stage:
    """A controller with everything around it; ``now`` is its clock."""

    scheduler: Scheduler
    backend: ScriptedBackend
    path: Path
    allowance: Allowance = ALLOWED
    has_hands: bool = True
    now: Instant = BEGIN

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin a new life over the same file."""
        self.outbox = Outbox(self.path)
        self.controller = Controller(
            cluster="main",
            eyes=self.scheduler,
            hands=self.scheduler if self.has_hands else None,
            backend=self.backend,
            outbox=self.outbox,
            clock=lambda: self.now,
            allowance=self.allowance,
        )

    def cycle(self, times: int = 1, every: float = 1) -> Cycle:
        """Do cycles, letting time pass after each."""
        cycle = Cycle()
        for _ in range(times):
            cycle = self.controller.cycle()
            self.wait(every)
        return cycle

    def wait(self, count: float) -> None:
        """Let time pass."""
        self.now = Instant(self.now + seconds(count))

    def kill(self) -> None:
        """End this life without a goodbye."""
        self.outbox.close()


StageOf = Callable[..., Stage]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[StageOf]:
    stages: list[Stage] = []

    def build(
        facts: list[JobFact] | None = None, advised: list[Advice] | None = None, **fields: object
    ) -> Stage:
        known = {one.scheduler_id: one for one in (facts if facts is not None else [failed()])}
        backend = ScriptedBackend(advised if advised is not None else [advice()])
        built = Stage(Scheduler(known), backend, tmp_path / "outbox.jsonl")
        for name, value in fields.items():
            setattr(built, name, value)
        if fields:
            built.kill()
            built.restart()
        stages.append(built)
        return built

    yield build
    for built in stages:
        built.kill()


def test_an_advice_is_followed_from_the_failure_to_the_running_attempt(stage: StageOf) -> None:
    there = stage()
    there.cycle(4)
    assert there.scheduler.asked == [("7", "requeue"), ("7", "start")]
    assert there.backend.told() == (Disposition.CONVERGED, StatusReason.DESIRED_STATE_OBSERVED)
    assert there.scheduler.facts["7"].excluded_nodes == ("node-02",)
    assert [one.outcome for one in there.backend.outcomes] == [Outcome.DONE, Outcome.DONE]
    there.cycle(20)
    assert len(there.scheduler.asked) == 2
    assert len(there.backend.outcomes) == 2


def test_a_controller_without_hands_says_what_would_be_done_and_does_nothing(
    stage: StageOf,
) -> None:
    there = stage(has_hands=False)
    there.cycle(10)
    assert there.scheduler.asked == []
    assert there.backend.told() == (Disposition.PENDING, StatusReason.NOT_PERMITTED)
    assert len(there.backend.statuses) == 1, "the same is not told twice"


@pytest.mark.parametrize(
    ("advised", "allowance"),
    [
        (advice(permit=None), ALLOWED),
        (advice(mode=Mode.MONITOR), ALLOWED),
        (
            advice(permit=msgspec.structs.replace(PERMIT, partition="debug")),
            ALLOWED,
        ),
        (
            advice(permit=msgspec.structs.replace(PERMIT, cluster="other")),
            ALLOWED,
        ),
        (
            advice(permit=msgspec.structs.replace(PERMIT, actions=(Action.REQUEUE,))),
            ALLOWED,
        ),
        (advice(), Allowance(policies=("default",), actions=(Action.CANCEL,))),
        (advice(), Allowance(policies=("default",), actions=(Action.REQUEUE,))),
        (advice(), Allowance(policies=("default",), partitions=("debug",))),
        (advice(), Allowance(policies=())),
        (advice(), Allowance(policies=("other",))),
        (
            advice(decision=Decision.STOP, exclusions=(), while_living=True),
            Allowance(policies=("default",), actions=(Action.REQUEUE, Action.EXCLUDE)),
        ),
    ],
)
def test_what_is_not_permitted_is_told_and_never_done(
    stage: StageOf, advised: Advice, allowance: Allowance
) -> None:
    running = fact(JobState.RUNNING) if advised.while_living else failed()
    there = stage([running], [advised], allowance=allowance)
    there.cycle(5)
    assert there.scheduler.asked == []
    assert there.backend.told() == (Disposition.PENDING, StatusReason.NOT_PERMITTED)


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (Seen(fact(JobState.CANCELLED)), StatusReason.CHANGED_BY_PERSON),
        (Seen(fact(JobState.COMPLETED)), StatusReason.SUPERSEDED),
        (Seen(waiting()), StatusReason.CHANGED_BY_PERSON),
        (
            Seen(fact(JobState.HELD, 1, held_by=Holder.USER, reason="JobHeldUser")),
            StatusReason.CHANGED_BY_PERSON,
        ),
        (Seen(fact(JobState.RUNNING)), StatusReason.WAITING),
        (Seen(None), StatusReason.JOB_GONE),
        (Seen(fact(JobState.FAILED, 2)), StatusReason.SUPERSEDED),
        (Seen(failed(partition="debug")), StatusReason.NOT_PERMITTED),
        (Unseen("scontrol timed out"), None),
    ],
)
def test_when_the_second_look_differs_nothing_is_ordered(
    stage: StageOf, second: Seen[JobFact | None] | Unseen, told: StatusReason | None
) -> None:
    there = stage()
    there.scheduler.second["7"] = second
    there.cycle()
    assert there.scheduler.asked == []
    assert there.scheduler.looks == ["*", "7"]
    assert [status.reason for _, status in there.backend.statuses] == [told] * bool(told)


def test_a_scheduler_that_does_not_answer_leaves_everything_as_it_is(stage: StageOf) -> None:
    there = stage()
    there.scheduler.is_dumb = True
    cycle = there.cycle()
    assert (cycle.is_complete, cycle.unseen) == (False, ("squeue timed out",))
    assert there.backend.times_asked == 0
    assert there.backend.statuses == []
    assert there.scheduler.asked == []
    (observation,) = there.backend.observations
    assert not observation.complete
    assert (observation.jobs, observation.present) == ((), ())


def test_an_unclear_order_is_repeated_only_later_and_only_after_a_look(stage: StageOf) -> None:
    there = stage()
    there.scheduler.script = [Answer(Outcome.UNCLEAR, "timed out")]
    there.cycle(4)
    assert there.scheduler.asked == [("7", "requeue")]
    there.wait(REPEAT_AFTER / 1e6)
    there.scheduler.looks.clear()
    there.cycle()
    assert there.scheduler.asked == [("7", "requeue")] * 2
    assert there.scheduler.looks == ["*", "7"]


def test_an_unclear_order_that_did_happen_is_not_repeated(stage: StageOf) -> None:
    there = stage()
    there.scheduler.script = [Answer(Outcome.UNCLEAR, "timed out")]
    there.cycle()
    there.scheduler.facts["7"] = waiting()
    there.wait(60)
    there.cycle(5)
    assert there.scheduler.asked == [("7", "requeue"), ("7", "start")]


@pytest.mark.parametrize("verb", ["requeue", "start"])
def test_a_refused_order_ends_the_advice_and_is_not_given_again(stage: StageOf, verb: str) -> None:
    there = stage()
    there.scheduler.script = [DONE] * (verb == "start") + [Answer(Outcome.REFUSED, "disabled")]
    there.cycle(10)
    assert [asked for _, asked in there.scheduler.asked].count(verb) == 1
    assert there.backend.told() == (Disposition.ABANDONED, StatusReason.SCHEDULER_REFUSED)


@pytest.mark.parametrize("verb", ["requeue", "start", "cancel"])
def test_a_refusal_whose_report_was_lost_still_ends_the_advice(stage: StageOf, verb: str) -> None:
    advised = advice(decision=Decision.STOP, exclusions=()) if verb == "cancel" else advice()
    there = stage([fact(JobState.RUNNING) if verb == "cancel" else failed()], [advised])
    there.scheduler.script = [DONE] * (verb == "start") + [Answer(Outcome.REFUSED, "disabled")]
    there.cycle(int(verb == "start"))
    there.backend.fails = {"outcome"}
    with pytest.raises(ExceptionGroup):
        there.cycle()
    there.backend.fails = set()
    there.kill()
    there.restart()
    there.cycle(10)
    assert [asked for _, asked in there.scheduler.asked].count(verb) == 1
    assert there.backend.told() == (Disposition.ABANDONED, StatusReason.SCHEDULER_REFUSED)
    assert there.backend.outcomes[-1].outcome is Outcome.REFUSED


@pytest.mark.parametrize("restarted", [False, True])
def test_a_result_that_the_backend_did_not_take_is_told_again_until_it_does(
    *, stage: StageOf, restarted: bool
) -> None:
    there = stage()
    there.backend.fails = {"outcome"}
    with pytest.raises(ExceptionGroup):
        there.cycle()
    if restarted:
        there.kill()
        there.restart()
    for _ in range(3):
        with pytest.raises(Unreachable):
            there.cycle()
    assert there.scheduler.asked == [("7", "requeue")]
    there.backend.fails = set()
    there.cycle(3)
    assert [one.order.verb for one in there.backend.outcomes] == [Verb.REQUEUE, Verb.START]
    assert there.scheduler.asked == [("7", "requeue"), ("7", "start")]


@pytest.mark.parametrize("call", ["observe", "advice", "status"])
def test_a_backend_that_fails_elsewhere_costs_no_order_and_repeats_none(
    stage: StageOf, call: str
) -> None:
    there = stage()
    there.cycle()
    there.backend.fails = {call}
    for _ in range(4):
        try:
            there.cycle()
        except (Unreachable, ExceptionGroup):
            there.wait(1)
    there.backend.fails = set()
    there.cycle(5)
    assert there.scheduler.asked == [("7", "requeue"), ("7", "start")]
    assert there.backend.told() == (Disposition.CONVERGED, StatusReason.DESIRED_STATE_OBSERVED)


def test_what_a_failing_backend_did_not_take_in_is_observed_again(stage: StageOf) -> None:
    there = stage(advised=[])
    there.backend.fails = {"observe"}
    with pytest.raises(Unreachable):
        there.cycle()
    there.backend.fails = set()
    there.cycle(3)
    assert [len(one.jobs) for one in there.backend.observations] == [1, 0, 0]
    assert [one.present for one in there.backend.observations] == [("7",)] * 3
    assert len({one.sequence for one in there.backend.observations}) == 3


@pytest.mark.parametrize("broken", ["refused", "not permitted", "unseen", "failing"])
def test_one_jobs_trouble_does_not_hold_up_another(stage: StageOf, broken: str) -> None:
    first = advice("6", permit=None) if broken == "not permitted" else advice("6")
    there = stage([failed("6"), failed("7")], [first, advice("7")])
    if broken == "refused":
        there.scheduler.script = [Answer(Outcome.REFUSED, "disabled")]
    if broken == "unseen":
        there.scheduler.second["6"] = Unseen("scontrol timed out")
    if broken == "failing":
        there.scheduler.script = [DONE]
        there.backend.fails = {"outcome"}
        with pytest.raises(ExceptionGroup):
            there.cycle()
        there.backend.fails = set()
    there.cycle(4)
    assert [verb for job, verb in there.scheduler.asked if job == "7"] == ["requeue", "start"]
    assert there.backend.told("7")[0] is Disposition.CONVERGED


def test_a_requeue_that_the_scheduler_forgot_is_left_to_a_person(stage: StageOf) -> None:
    there = stage()
    there.cycle()
    there.scheduler.facts["7"] = failed()
    there.cycle(10)
    assert there.backend.told() == (Disposition.PENDING, StatusReason.WAITING)
    there.wait(30)
    there.cycle(5)
    assert there.scheduler.asked == [("7", "requeue")]
    assert there.backend.told() == (Disposition.ABANDONED, StatusReason.AMBIGUOUS)


def test_a_controller_killed_between_intent_and_answer_looks_before_it_asks_again(
    stage: StageOf,
) -> None:
    there = stage()
    there.outbox.intend(Order(attempt=advice().attempt, generation=1, verb=Verb.REQUEUE), there.now)
    there.kill()
    there.restart()
    there.cycle(3)
    assert there.scheduler.asked == []
    there.scheduler.facts["7"] = waiting()
    there.cycle(3)
    assert there.scheduler.asked == [("7", "start")]


def test_the_sites_own_note_survives_and_a_new_generation_is_a_new_order(stage: StageOf) -> None:
    old = advice()
    note = write_note("ticket 12", old, None)
    changed = advice(generation=2, exclusions=(), given_back=("node-02",))
    there = stage([waiting(note=note, excluded_nodes=("old-1", "node-02"))], [changed])
    requeue = Order(attempt=old.attempt, generation=1, verb=Verb.REQUEUE)
    there.outbox.intend(requeue, there.now)
    there.cycle(2)
    assert there.scheduler.asked == [("7", "start")]
    started = there.scheduler.facts["7"]
    assert started.note.startswith("ticket 12 [relight main:7-0/2: ")
    assert started.excluded_nodes == ("old-1",)


def test_a_job_that_lives_is_left_alone_while_leave_is_withheld(stage: StageOf) -> None:
    there = stage([fact(JobState.RUNNING)], [advice(while_living=True, permit=None)])
    there.cycle(5)
    assert there.scheduler.asked == []
    assert there.backend.told() == (Disposition.PENDING, StatusReason.NOT_PERMITTED)
    assert "No leave is given now" in there.backend.statuses[-1][1].sentence
