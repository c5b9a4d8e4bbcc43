"""The backend over a real store: who a job is, what is kept, and what a failure leaves behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from relight.daemon.backends import Backend
from relight.engine.cases import Case
from relight.engine.replaying import compare, replay
from relight.model.advice import (
    Advice,
    Approval,
    Decision,
    Disposition,
    Mode,
    ReconciliationStatus,
    StatusReason,
)
from relight.model.instants import Instant, seconds
from relight.model.jobs import AttemptKey, JobFact, JobKey, JobState, NodeFact, NodeState
from relight.model.observations import Observation
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import FindingMade, ProgressSeen, Stimulus, Word
from relight.policy.policies import PolicyBook
from relight.serve.ports import Declined
from relight.store import AuditFilters, Change, Store, StoreBusy
from relight.testing.stories import COMMENT, KEY, NODES, START, book, fact, finding


class FragileStore(Store):
    """A store whose next commits fail, as they do while another process holds the database."""

    failures = 0

    def commit(self, change: Change) -> None:
        """Write all of a change, or fail as scripted."""
        if self.failures:
            self.failures -= 1
            raise StoreBusy("another process holds the database: try again")
        super().commit(change)


@dataclass
class Life:
    """A backend in its present life, and the clock that it goes by."""

    path: Path
    policies: PolicyBook
    now: Instant = START
    sequence: int = 0

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Open the store and begin a life over it."""
        self.store = FragileStore.open(str(self.path))
        self.backend = Backend(self.store, {"main": self.policies}, "rules", lambda: self.now)

    def restart(self) -> None:
        """End this life and begin another over the same store."""
        self.store.close()
        self.begin()

    def observation(
        self,
        *facts: JobFact,
        present: tuple[str, ...] | None = None,
        complete: bool = True,
        nodes: tuple[NodeFact, ...] = (),
    ) -> Observation:
        """Return an observation of these jobs; they are all that is present unless told."""
        self.sequence += 1
        ids = tuple(one.scheduler_id for one in facts) if present is None else present
        return Observation(
            cluster="main",
            sequence=self.sequence,
            at=self.now,
            complete=complete,
            jobs=facts,
            present=ids,
            nodes=nodes,
        )

    def see(self, *facts: JobFact, nodes: tuple[NodeFact, ...] = ()) -> None:
        """Let the controller see something."""
        self.backend.observe(self.observation(*facts, nodes=nodes))

    def case(self, key: JobKey = KEY) -> Case:
        """Return the stored case of a job."""
        stored = self.store.case(key)
        assert stored is not None
        return stored

    def cases(self) -> tuple[Case, ...]:
        """Return the open cases in the order of their keys."""
        return tuple(sorted(self.backend.open_cases(), key=lambda case: case.key))

    def advice(self, attempt: int = 0, key: JobKey = KEY) -> Advice:
        """Return the stored advice on an attempt."""
        found = self.case(key).attempt(attempt)
        assert found is not None
        assert found.advice is not None
        return found.advice

    def tell(self, *stimuli: Stimulus) -> None:
        """Give stimuli to the backend."""
        self.backend.take(*stimuli)

    def crash(self) -> None:
        """Let the job run, fail by one node's fault, and its logs be read to their end."""
        self.see(fact(JobState.RUNNING), nodes=up(*NODES, "node-04"))
        made = finding("ecc", ranks=(1,), nodes=("node-02",), seen_at=self.now)
        self.tell(FindingMade(job=KEY, seen_at=self.now, finding=made))
        self.see(fact(JobState.FAILED, exit_status=1))
        self.tell(ProgressSeen(job=KEY, seen_at=self.now, attempt=0, final=True))

    def check_replay(self) -> None:
        """Check that the journal alone leads to what is stored."""
        replayed = replay(self.store.journal(), self.store.policy_books())
        stored = self.store.advice(limit=1000).items
        entries = self.store.audit(AuditFilters(), limit=1000).items
        report = compare(replayed, stored, entries)
        assert report.is_same, report.differences


def up(*names: str) -> tuple[NodeFact, ...]:
    return tuple(
        NodeFact(cluster="main", name=name, state=NodeState.UP, partitions=("train",), is_idle=True)
        for name in names
    )


LifeOf = Callable[..., Life]


@pytest.fixture
def life_of(tmp_path: Path) -> Iterator[LifeOf]:
    lives: list[Life] = []

    def build(mode: Mode = Mode.ACT, **fields: object) -> Life:
        lives.append(Life(tmp_path / "relight.db", book(mode, **fields)))
        return lives[-1]

    yield build
    for life in lives:
        life.store.close()


@pytest.fixture
def life(life_of: LifeOf) -> Iterator[Life]:
    built = life_of()
    yield built
    built.check_replay()


def test_a_crash_becomes_advice_with_the_capacity_of_the_nodes_that_were_seen(life: Life) -> None:
    life.crash()
    (advice,) = life.backend.active_advice("main")
    assert advice == life.advice()
    assert advice.decision is Decision.RESTART_EXCLUDING_NODE
    assert advice.exclusions == ("node-02",)
    capacity = life.case().capacity
    assert capacity is not None
    assert (capacity.without, capacity.fit_now, capacity.fit_ever) == (("node-02",), 3, 3)
    assert life.backend.active_advice("") == (advice,)
    assert life.backend.active_advice("other") == ()


def test_on_a_cluster_without_a_spare_node_the_suspect_is_not_left_out(life: Life) -> None:
    life.see(fact(JobState.RUNNING), nodes=up(*NODES))
    made = finding("ecc", nodes=("node-02",))
    life.tell(FindingMade(job=KEY, seen_at=life.now, finding=made))
    life.see(fact(JobState.FAILED))
    life.tell(ProgressSeen(job=KEY, seen_at=life.now, attempt=0, final=True))
    assert life.advice().decision is Decision.RESTART
    assert "cannot be left out" in life.advice().reason.sentence


def test_while_no_node_was_ever_seen_capacity_stays_unknown_and_nobody_is_excluded(
    life: Life,
) -> None:
    life.see(fact(JobState.RUNNING))
    made = finding("ecc", nodes=("node-02",))
    life.tell(FindingMade(job=KEY, seen_at=life.now, finding=made))
    life.see(fact(JobState.FAILED))
    life.tell(ProgressSeen(job=KEY, seen_at=life.now, attempt=0, final=True))
    assert life.backend.active_advice("main") == ()
    life.now = Instant(life.now + seconds(11))
    life.backend.wake_due()
    assert life.advice().decision is Decision.RESTART
    assert "could not be seen" in life.advice().reason.sentence


def test_a_job_that_nobody_opted_in_is_not_kept(life: Life) -> None:
    life.see(fact(JobState.RUNNING, comment=""), fact(JobState.FAILED, comment="x", user="bob"))
    assert life.cases() == ()
    assert life.store.case(KEY) is None
    assert list(life.store.journal()) == []


def test_a_job_of_a_cluster_that_is_not_configured_is_not_kept(life: Life) -> None:
    observation = msgspec.structs.replace(
        life.observation(fact(JobState.RUNNING, cluster="other")), cluster="other"
    )
    life.backend.observe(observation)
    assert life.cases() == ()


def test_a_job_with_a_broken_comment_is_kept_and_left_alone(life: Life) -> None:
    life.see(fact(JobState.RUNNING, comment='{"relight": {"max_restart": 3}}'))
    (case,) = life.cases()
    assert case.choice.errors
    life.see(fact(JobState.FAILED, comment='{"relight": {"max_restart": 3}}'))
    assert life.backend.active_advice("main") == ()


def test_the_same_observation_again_changes_nothing(life: Life) -> None:
    life.crash()
    before, count = life.case(), len(list(life.store.journal()))
    for _ in range(3):
        life.see(fact(JobState.FAILED, exit_status=1))
    assert life.case() == before
    assert len(list(life.store.journal())) == count


LATER = Instant(START + seconds(3_600))


def test_a_reused_id_is_a_new_job_and_the_old_ones_advice_is_abandoned(life: Life) -> None:
    life.crash()
    assert life.advice().is_active
    life.see(fact(JobState.RUNNING, submitted_at=LATER))
    second = JobKey(cluster="main", scheduler_id="7", reuse=1)
    assert [case.key for case in life.cases()] == [second]
    assert life.advice().status.disposition is Disposition.ABANDONED
    assert life.advice().status.reason is StatusReason.JOB_GONE
    assert life.backend.active_advice("main") == ()
    life.see(fact(JobState.FAILED, submitted_at=LATER))
    latest = life.case(second).latest
    assert latest is not None
    assert latest.fact.state is JobState.FAILED
    assert life.case(KEY).attempts[-1].fact.submitted_at == START


def test_a_third_bearer_is_told_from_the_second_also_after_a_restart_and_a_long_silence(
    life: Life,
) -> None:
    for number in range(3):
        at = Instant(START + seconds(100 * number))
        life.see(fact(JobState.RUNNING, submitted_at=at))
        life.see(fact(JobState.COMPLETED, submitted_at=at))
        key = JobKey(cluster="main", scheduler_id="7", reuse=number)
        life.tell(ProgressSeen(job=key, seen_at=life.now, attempt=0, final=True))
        assert life.cases() == ()
        life.restart()
    keys = [JobKey(cluster="main", scheduler_id="7", reuse=number) for number in range(4)]
    assert [life.store.case(key) is not None for key in keys] == [True, True, True, False]


def test_another_users_job_under_the_same_id_is_another_job(life: Life) -> None:
    life.see(fact(JobState.RUNNING))
    life.see(fact(JobState.RUNNING, 1, user="mallory", comment=COMMENT))
    assert {case.key.reuse for case in life.cases() if not case.is_gone} == {1}


def test_a_reused_id_that_is_not_opted_in_ends_the_old_job_and_begins_none(life: Life) -> None:
    life.crash()
    life.see(fact(JobState.RUNNING, submitted_at=LATER, comment=""))
    assert not life.advice().is_active
    assert life.cases() == ()
    life.see(fact(JobState.FAILED, submitted_at=LATER, comment=""))
    assert life.store.newest_case("main", "7") == life.case()


def test_a_requeued_job_stays_the_same_job(life: Life) -> None:
    life.see(fact(JobState.RUNNING))
    life.see(fact(JobState.PENDING, 1, submitted_at=LATER))
    (case,) = life.cases()
    assert [one.number for one in case.attempts] == [0, 1]


def test_an_answer_that_was_overtaken_changes_nothing(life: Life) -> None:
    life.see(fact(JobState.RUNNING, 1, submitted_at=LATER))
    before = life.case()
    life.see(fact(JobState.FAILED, 0))
    life.see(fact(JobState.FAILED, 1, submitted_at=START))
    assert life.case() == before


@pytest.mark.parametrize(("complete", "gone"), [(True, True), (False, False)])
def test_a_job_is_gone_only_when_a_complete_observation_lacks_it(
    *, life: Life, complete: bool, gone: bool
) -> None:
    life.see(fact(JobState.RUNNING))
    life.backend.observe(life.observation(present=("8",), complete=complete))
    assert life.case().is_gone is gone


def test_a_job_that_did_not_change_but_is_present_is_not_gone(life: Life) -> None:
    life.see(fact(JobState.RUNNING))
    life.backend.observe(life.observation(present=("7",)))
    assert not life.case().is_gone


def test_a_node_that_goes_down_is_told_to_the_jobs_that_run_on_it(life: Life) -> None:
    other = fact(JobState.RUNNING, scheduler_id="8", nodes=("node-04",))
    life.see(fact(JobState.RUNNING), other)
    down = msgspec.structs.replace(up("node-02")[0], state=NodeState.DOWN, reason="dead")
    life.backend.observe(life.observation(present=("7", "8"), nodes=(down,)))
    assert life.case().attempts[0].gone_nodes == ("node-02",)
    (there,) = life.case(JobKey(cluster="main", scheduler_id="8")).attempts
    assert there.gone_nodes == ()


def test_what_the_store_did_not_take_did_not_happen_and_can_be_given_again(life: Life) -> None:
    life.see(fact(JobState.RUNNING))
    before = life.cases()
    failed = life.observation(fact(JobState.FAILED, exit_status=1))
    life.store.failures = 1
    with pytest.raises(ExceptionGroup) as failure:
        life.backend.observe(failed)
    assert failure.group_contains(StoreBusy)
    assert life.cases() == before
    assert life.case() == before[0]
    life.backend.observe(failed)
    latest = life.case().latest
    assert latest is not None
    assert latest.fact.state is JobState.FAILED
    seen = [record for record in life.store.journal() if "7" in record.stimulus.job.scheduler_id]
    assert len(seen) == 2


def test_one_job_that_the_store_refuses_does_not_cost_the_others_their_observation(
    life: Life,
) -> None:
    broken = fact(JobState.RUNNING, scheduler_id="6" * 5_000)
    with pytest.raises(ExceptionGroup, match="1 of the jobs"):
        life.see(broken, fact(JobState.RUNNING))
    assert [case.key for case in life.cases()] == [KEY]


def test_a_store_failure_takes_neither_advice_nor_order_with_it(life: Life) -> None:
    life.crash()
    advice = life.advice()
    order = Order(attempt=advice.attempt, generation=1, verb=Verb.REQUEUE)
    outcome = OrderOutcome(
        order=order, outcome=Outcome.DONE, answer="", ordered_at=START, answered_at=START
    )
    life.store.failures = 1
    with pytest.raises(StoreBusy):
        life.backend.outcome(outcome)
    assert life.cases()[0].attempts[0].orders == ()
    for _ in range(3):
        life.backend.outcome(outcome)
    assert life.case().attempts[0].orders == (outcome,)


def test_a_restarted_backend_goes_on_with_the_same_cases_and_advice(life: Life) -> None:
    life.crash()
    before, advised = life.cases(), life.backend.active_advice("main")
    life.restart()
    assert life.cases() == before
    assert life.backend.active_advice("main") == advised
    status = ReconciliationStatus(
        disposition=Disposition.CONVERGED,
        reason=StatusReason.DESIRED_STATE_OBSERVED,
        sentence="Attempt 1 runs as advised.",
        generation=1,
    )
    life.backend.reconciliation_status(advised[0].attempt, status)
    assert life.advice().status == status
    life.see(fact(JobState.RUNNING, 1, nodes=("node-01", "node-03", "node-04")))
    assert [one.number for one in life.case().attempts] == [0, 1]


def test_a_word_about_a_job_that_was_never_seen_makes_no_job(life: Life) -> None:
    stranger = AttemptKey.parse("main:99-0")
    life.backend.reconciliation_status(stranger, ReconciliationStatus(generation=1))
    order = Order(attempt=stranger, generation=1, verb=Verb.REQUEUE)
    life.backend.outcome(
        OrderOutcome(
            order=order, outcome=Outcome.DONE, answer="", ordered_at=START, answered_at=START
        )
    )
    assert life.cases() == ()
    life.see(fact(JobState.RUNNING, scheduler_id="99"))
    assert [str(case.key) for case in life.cases()] == ["main:99"]


def test_a_person_who_says_yes_gives_leave_in_a_new_generation(life_of: LifeOf) -> None:
    life = life_of(Mode.APPROVE)
    life.crash()
    advice = life.advice()
    assert (advice.approval, advice.permit) == (Approval.WAITING, None)
    life.backend.person_said(advice.attempt, generation=1, word=Word.APPROVE, who="olivia", why="")
    approved = life.advice()
    assert (approved.generation, approved.approval) == (2, Approval.APPROVED)
    assert approved.permit is not None
    assert [one.generation for one in life.store.generations(advice.attempt)] == [1, 2]
    life.check_replay()


def test_a_person_who_says_no_ends_the_advice(life_of: LifeOf) -> None:
    life = life_of(Mode.APPROVE)
    life.crash()
    attempt = life.advice().attempt
    life.backend.person_said(
        attempt, generation=1, word=Word.REJECT, who="olivia", why="I look at it myself"
    )
    assert life.advice().approval is Approval.REJECTED
    assert life.advice().status.reason is StatusReason.CHANGED_BY_PERSON
    assert "I look at it myself" in life.advice().status.sentence
    with pytest.raises(Declined) as refusal:
        life.backend.person_said(attempt, generation=1, word=Word.APPROVE, who="olivia", why="")
    assert refusal.value.code == "no-active-advice"


@pytest.mark.parametrize(
    ("attempt", "generation", "code"),
    [
        ("main:99-0", 1, "no-active-advice"),
        ("main:7-3", 1, "no-active-advice"),
        ("main:7-0", 2, "advice-changed"),
        ("main:7-0", 0, "advice-changed"),
    ],
)
@pytest.mark.parametrize("word", Word)
def test_a_word_that_fits_no_advice_is_declined_and_changes_nothing(
    life_of: LifeOf, attempt: str, generation: int, code: str, word: Word
) -> None:
    life = life_of(Mode.APPROVE)
    life.crash()
    before = life.case()
    with pytest.raises(Declined) as refusal:
        life.backend.person_said(
            AttemptKey.parse(attempt), generation=generation, word=word, who="olivia", why=""
        )
    assert refusal.value.code == code
    assert life.case() == before


def test_an_advice_that_nobody_approves_expires(life_of: LifeOf) -> None:
    life = life_of(Mode.APPROVE, expires=seconds(60))
    life.crash()
    life.now = Instant(life.now + seconds(59))
    life.backend.wake_due()
    assert life.advice().is_active
    life.now = Instant(life.now + seconds(2))
    life.backend.wake_due()
    assert life.advice().status.reason is StatusReason.ADVICE_EXPIRED
    assert "nobody approved it" in life.advice().status.sentence


def test_loops_are_stirred_after_the_commit_and_not_when_it_failed(life: Life) -> None:
    stirred: list[JobState] = []

    def note() -> None:
        latest = life.case().latest
        assert latest is not None
        stirred.append(latest.fact.state)

    life.see(fact(JobState.RUNNING))
    life.backend.when_stirred(note)
    life.store.failures = 1
    with pytest.raises(ExceptionGroup):
        life.see(fact(JobState.FAILED))
    assert stirred == []
    life.see(fact(JobState.FAILED))
    assert stirred == [JobState.FAILED]


def test_many_jobs_are_taken_in_at_once_and_cost_nothing_while_they_do_not_change(
    life_of: LifeOf,
) -> None:
    life = life_of()
    facts = [fact(JobState.RUNNING, scheduler_id=str(1_000 + number)) for number in range(500)]
    spans = [
        taken(lambda: life.see(*facts)),
        taken(lambda: life.see(*facts)),
        taken(life.backend.wake_due),
        taken(life.restart),
    ]
    assert len(life.cases()) == 500
    assert all(span < most for span, most in zip(spans, [10, 0.5, 0.1, 5], strict=True)), spans


def taken(call: Callable[[], None]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began
