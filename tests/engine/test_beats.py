"""How often a living attempt is spoken of: once for each trouble, and ever more rarely after."""

from __future__ import annotations

from itertools import pairwise

import pytest

from relight.engine.step import Step
from relight.model.advice import Decision, Disposition, Mode
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.instants import Instant, seconds
from relight.model.jobs import JobState, NodeFact, NodeState
from relight.model.stimuli import NodeSeen, PersonSaid, Tick, Word
from relight.policy.policies import Response
from relight.testing.stories import KEY
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

WORK = told(
    "gpus-work",
    Kind.HANG,
    role=Role.BENIGN,
    domain=Domain.NONE,
    remedy=Remedy.REPORT,
)
NO_REQUEUE = {"requeue_allowed": False}
SUCCESSOR = {"successors": ("9",)}


def story(*found: Finding, mode: Mode = Mode.ACT, **fields: object) -> WitnessedStory:
    return WitnessedStory(
        policy_book=witnessed_book(mode, **fields),  # type: ignore[arg-type]  # fields of a policy
        testimony={Witness.TELEMETRY: found},
    )


def lose(life: WitnessedStory, node: str) -> None:
    """Let the scheduler call a node down."""
    down = NodeFact(cluster="main", name=node, state=NodeState.DOWN)
    life.take(NodeSeen(job=KEY, seen_at=life.now, fact=down))


def reject(life: WitnessedStory) -> None:
    life.take(
        PersonSaid(
            job=KEY,
            seen_at=life.now,
            attempt=0,
            generation=life.advice().generation,
            word=Word.REJECT,
            who="alice",
        )
    )


def step_on(life: WitnessedStory, minutes: int, first: int = 300) -> None:
    for number in range(minutes):
        life.wait(60)
        life.progress(best_step=first + number, last_step=first + number)


def print_bad_number(life: WitnessedStory, count: int, rule: str = "loss-not-a-number") -> None:
    life.find(
        rule,
        kind=Kind.NUMERIC,
        role=Role.EITHER,
        domain=Domain.APPLICATION,
        remedy=Remedy.REPORT,
        detector="numerics",
        offset=7000 + count,
    )


@pytest.mark.parametrize("said", [NO_REQUEUE, SUCCESSOR], ids=["no-requeue", "successor"])
def test_a_job_that_lives_on_without_a_node_is_told_of_once(said: dict[str, object]) -> None:
    life = story().begin(0, **said)
    lose(life, "node-02")
    step_on(life, 60)
    assert life.advice().decision is Decision.NONE
    assert life.advice().generation == 1
    assert len(life.asked) == 1


def test_a_persons_no_about_a_lost_node_stands() -> None:
    life = story(mode=Mode.APPROVE).begin()
    lose(life, "node-02")
    life.wait(30)
    reject(life)
    step_on(life, 60)
    assert life.advice().generation == 1
    assert life.advice().status.disposition is Disposition.ABANDONED


def test_another_node_that_is_lost_after_a_persons_no_is_asked_about() -> None:
    life = story(mode=Mode.APPROVE).begin()
    lose(life, "node-02")
    life.wait(30)
    reject(life)
    lose(life, "node-03")
    life.wait(30)
    assert life.advice().is_active
    assert life.advice().generation == 2
    assert "node-03" in life.advice().exclusions


def test_a_node_lost_while_an_advice_that_a_person_rejects_was_active_is_not_forgotten() -> None:
    life = story(mode=Mode.APPROVE).begin()
    lose(life, "node-02")
    life.wait(30)
    lose(life, "node-03")
    reject(life)
    life.wait(30)
    assert life.advice().is_active
    assert "node-03" in life.advice().exclusions


def test_what_comes_after_a_persons_no_about_a_node_is_judged_by_itself() -> None:
    life = story(mode=Mode.APPROVE).begin()
    lose(life, "node-02")
    life.wait(30)
    reject(life)
    life.fall_silent().wait(60)
    assert not life.advice().is_active
    life.wait(600)
    assert life.advice().is_active
    assert life.advice().generation == 2


def test_advice_about_a_lost_node_that_expires_comes_again_after_growing_pauses() -> None:
    life = story(expires=seconds(300)).begin()
    lose(life, "node-02")
    made: dict[int, Instant] = {}
    for _ in range(720):
        life.wait(10)
        advice = life.advice()
        made.setdefault(advice.generation, advice.made_at)
    apart = [after - before for before, after in pairwise(made.values())]
    assert 3 <= len(made) <= 5
    assert all(after > 1.5 * before for before, after in pairwise(apart))


def test_a_lost_node_is_spoken_of_again_after_the_job_was_suspended() -> None:
    life = story().begin()
    lose(life, "node-02")
    life.wait(30)
    life.see(JobState.SUSPENDED).wait(300)
    assert not life.advice().is_active
    life.see(JobState.RUNNING).wait(30)
    assert life.advice().is_active
    assert life.advice().exclusions == ("node-02",)


def test_bad_numbers_and_then_a_lost_node_are_a_story_of_the_node() -> None:
    life = story(mode=Mode.APPROVE, numeric=Response.REPORT).begin()
    life.testimony = {}
    print_bad_number(life, 1)
    lose(life, "node-02")
    life.wait(60)
    incident = life.attempt().incident
    assert incident is not None
    assert incident.kind is Kind.NODE
    assert life.advice().exclusions == ("node-02",)


class Counted(WitnessedStory):
    """A story that counts how often it is woken."""

    ticks: int = 0

    def take(self, stimulus: object) -> Step:
        """Count a Tick."""
        self.ticks += isinstance(stimulus, Tick)
        return super().take(stimulus)


@pytest.mark.parametrize("has_line", [False, True], ids=["silence", "line"])
def test_while_nobody_listens_to_its_logs_it_is_not_woken(*, has_line: bool) -> None:
    life = Counted(policy_book=witnessed_book(), testimony={Witness.TELEMETRY: ()})
    life.begin()
    if has_line:
        life.find("fatal-line", offset=8000)
    else:
        life.fall_silent()
    life.is_listened_to = False
    life.wait(4200)
    assert life.attempt().advice is None
    assert life.ticks < 10
    life.is_listened_to = True
    life.wait(60)
    assert life.advice().is_active


def test_gpus_at_work_after_a_line_are_looked_at_ever_more_rarely() -> None:
    life = story(WORK).begin()
    life.find("fatal-line", offset=8000, domain=Domain.UNKNOWN, remedy=Remedy.RESTART)
    life.wait(3600)
    first_hour = len(life.asked)
    life.wait(4 * 3600)
    assert life.attempt().advice is None
    assert first_hour <= 8
    assert 8 <= len(life.asked) - first_hour <= 9


def test_gpus_that_stop_working_after_a_line_are_found_at_the_next_look() -> None:
    life = story(WORK).begin()
    life.find("fatal-line", offset=8000, domain=Domain.UNKNOWN, remedy=Remedy.RESTART)
    life.wait(3600)
    life.testimony = {Witness.TELEMETRY: ()}
    assert life.attempt().advice is None
    life.wait(1860)
    assert life.advice().is_active


@pytest.mark.parametrize("numeric", [Response.RESTART, Response.STOP])
def test_bad_numbers_are_told_once_where_nothing_follows(numeric: Response) -> None:
    life = story(mode=Mode.APPROVE, numeric=numeric).begin(0, **NO_REQUEUE)
    for number in range(40):
        print_bad_number(life, number)
        life.wait(30)
        life.progress(best_step=300 + number)
        if life.advice().is_active:
            reject(life)
    assert life.advice().generation == 1
    assert len(life.asked) == 1


def test_bad_numbers_of_another_kind_are_told_after_a_persons_no() -> None:
    life = story(mode=Mode.APPROVE, numeric=Response.STOP).begin()
    print_bad_number(life, 1, "loss-spike")
    life.wait(30)
    reject(life)
    print_bad_number(life, 2)
    life.wait(30)
    assert life.advice().is_active
    assert life.advice().generation == 2


def test_bad_numbers_that_were_only_told_of_are_acted_on_once_the_policy_says_so() -> None:
    life = story(numeric=Response.REPORT).begin()
    print_bad_number(life, 1)
    life.wait(30)
    assert life.advice().decision is Decision.NONE
    life.policy_book = witnessed_book(numeric=Response.STOP)
    print_bad_number(life, 2)
    life.wait(30)
    assert life.advice().decision is Decision.STOP


@pytest.mark.parametrize(
    ("detector", "remedy", "first", "last"),
    [
        ("tracebacks", Remedy.RESTART, Decision.STOP, Decision.RESTART),
        ("signatures", Remedy.HOLD, Decision.STOP, Decision.HOLD),
        ("signatures", Remedy.RESTART, Decision.STOP, Decision.STOP),
    ],
    ids=["an exception that may have been caught", "shared storage", "a line that explains it"],
)
def test_a_silence_after_bad_numbers_speaks_unless_a_line_explains_it(
    detector: str, remedy: Remedy, first: Decision, last: Decision
) -> None:
    life = story(mode=Mode.APPROVE, numeric=Response.STOP).begin()
    print_bad_number(life, 1)
    life.find("some-line", detector=detector, remedy=remedy, domain=Domain.UNKNOWN, offset=8000)
    life.wait(140)
    assert life.advice().decision is first
    life.fall_silent().wait(700)
    assert life.advice().decision is last
    assert life.advice().generation == (1 if first is last else 2)
