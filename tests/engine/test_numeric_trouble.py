"""A living attempt that computes nonsense: what its policy says, and what earlier attempts show."""

from __future__ import annotations

import msgspec
import pytest

from relight.model.advice import Action, Decision
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.instants import seconds
from relight.model.jobs import JobState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import FindingMade, OrderDone
from relight.model.verdicts import Verdict
from relight.policy.policies import Response
from relight.testing.stories import KEY, NODES, Story
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

OTHERS = ("node-04", "node-05", "node-06")
ONE_ALIKE = ("node-01", "node-05", "node-06")


def story(numeric: Response, *found: Finding, **fields: object) -> WitnessedStory:
    life = WitnessedStory(
        policy_book=witnessed_book(numeric=numeric, **fields),  # type: ignore[arg-type]  # fields of a policy
        testimony={Witness.TELEMETRY: found},
    )
    return life.begin()


def trouble(
    life: Story, step: int, attempt: int = 0, rule: str = "loss-not-a-number"
) -> WitnessedStory:
    """Let the numbers of the log tell of trouble after a step."""
    made = told(
        rule,
        Kind.NUMERIC,
        id=f"{rule}-{attempt}-{step}",
        detector="numerics",
        role=Role.ROOT,
        domain=Domain.APPLICATION,
        remedy=Remedy.CONFIRM_THEN_STOP,
        step=step,
        seen_at=life.now,
        attempt=life.case.key_of(attempt),
    )
    from_log = msgspec.structs.replace(made, provenance=Provenance.JOB_LOG)
    life.take(FindingMade(job=KEY, seen_at=life.now, finding=from_log))
    assert isinstance(life, WitnessedStory)
    return life


def verdict_of(life: Story, attempt: int = 0) -> Verdict:
    incident = life.attempt(attempt).incident
    assert incident is not None
    assert incident.verdict is not None
    return incident.verdict


def restarted(life: WitnessedStory, attempt: int, nodes: tuple[str, ...]) -> WitnessedStory:
    """Let the advised restart happen, and the next attempt run for ten minutes on these nodes."""
    advice = life.advice(attempt)
    order = Order(attempt=advice.attempt, generation=advice.generation, verb=Verb.REQUEUE)
    done = OrderOutcome(
        order=order, outcome=Outcome.DONE, answer="", ordered_at=life.now, answered_at=life.now
    )
    life.take(OrderDone(job=KEY, seen_at=life.now, outcome=done))
    life.see(JobState.PENDING, attempt + 1).progress(attempt, final=True)
    return life.begin(attempt + 1, nodes=nodes)


@pytest.mark.parametrize(
    ("numeric", "decision", "code"),
    [
        (Response.REPORT, Decision.NONE, "numeric-reported"),
        (Response.STOP, Decision.STOP, "numeric-stop"),
        (Response.RESTART, Decision.RESTART, "restart"),
    ],
)
def test_the_policy_says_what_is_done_about_nonsense(
    numeric: Response, decision: Decision, code: str
) -> None:
    life = trouble(story(numeric), 200)
    assert (life.advice().decision, life.advice().reason.code) == (decision, code)
    assert len(life.asked) == 1


def test_steps_that_go_on_do_not_make_nonsense_well() -> None:
    life = trouble(story(Response.RESTART), 200)
    for step in range(201, 210):
        life.wait(5).progress(best_step=step)
    assert life.advice().is_active


@pytest.mark.parametrize("numeric", [Response.REPORT, Response.RESTART])
def test_the_last_checkpoint_before_the_trouble_is_named_and_a_later_one_warned_of(
    numeric: Response,
) -> None:
    life = story(numeric)
    life.progress(best_step=205, best_checkpoint=205)
    trouble(life, 180)
    sentence = life.advice().reason.sentence
    assert "last checkpoint before it is that of step 100" in sentence
    assert "step 205 was written after it began" in sentence


@pytest.mark.parametrize(("rule", "is_sent"), [("loss-spike", True), ("loss-not-a-number", False)])
def test_only_a_loss_that_is_still_a_number_is_worth_a_checkpoint(
    rule: str, *, is_sent: bool
) -> None:
    life = trouble(story(Response.RESTART, signal_first="USR1@60"), 200, rule=rule)
    assert (life.advice().forewarning is not None) is is_sent


def test_the_same_step_on_other_nodes_is_the_applications_own_and_stops() -> None:
    life = restarted(trouble(story(Response.RESTART), 200), 0, OTHERS)
    trouble(life, 203, attempt=1)
    assert life.advice(1).decision is Decision.STOP
    assert verdict_of(life, 1).domain is Domain.APPLICATION
    assert "attempt 0 came to the same at this step on other nodes" in verdict_of(life, 1).sentence


def test_trouble_that_moves_with_a_node_suspects_it_of_silent_corruption() -> None:
    life = restarted(trouble(story(Response.RESTART), 150), 0, OTHERS)
    life.find("ecc", attempt=1, ranks=(0,), tasks=(0,), offset=77)
    life.see(JobState.FAILED, 1, exit_status=1, nodes=OTHERS).progress(1, final=True)
    restarted(life, 1, ONE_ALIKE)
    trouble(life, 190, attempt=2)
    verdict = verdict_of(life, 2)
    assert verdict.domain is Domain.HARDWARE
    assert [one.node for one in verdict.suspects] == ["node-01"]
    assert "silent data corruption" in verdict.sentence
    assert life.advice(2).exclusions == ("node-01",)


def test_an_end_by_nonsense_is_judged_by_the_earlier_attempts_too() -> None:
    life = restarted(trouble(story(Response.RESTART), 200), 0, OTHERS)
    life.testimony.clear()
    trouble(life, 200, attempt=1)
    life.see(JobState.FAILED, 1, exit_status=1, nodes=OTHERS).progress(1, final=True)
    life.wait(20)
    assert life.advice(1).decision is Decision.STOP
    assert "at this step on other nodes" in verdict_of(life, 1).sentence


def test_a_witness_that_names_a_node_stands_above_the_history() -> None:
    ecc = told("gpu-ecc-uncorrectable", Kind.NODE, nodes=("node-05",))
    life = restarted(trouble(story(Response.RESTART), 200), 0, OTHERS)
    life.testimony[Witness.TELEMETRY] = (ecc,)
    trouble(life, 200, attempt=1)
    if verdict_of(life, 1).suspects:
        assert "at this step on other nodes" not in verdict_of(life, 1).sentence


def test_a_stop_that_the_policy_may_not_carry_out_is_told() -> None:
    life = trouble(story(Response.STOP, may=(Action.REQUEUE,)), 200)
    assert life.advice().permit is None
    assert "may only: requeue" in life.advice().reason.sentence


def test_steps_that_close_another_incident_leave_nonsense_open() -> None:
    life = story(Response.RESTART)
    life.find("ecc", ranks=(1,), tasks=(1,), offset=90)
    trouble(life, 200)
    assert life.attempt().advice is None, "the line speaks first"
    for step in range(201, 206):
        life.wait(5).progress(best_step=step)
    assert life.advice().decision is Decision.RESTART
    assert life.advice().is_active


def test_a_warning_before_the_trouble_does_not_let_steps_withdraw_the_advice() -> None:
    life = story(Response.RESTART)
    life.find("watchdog", role=Role.SYMPTOM, domain=Domain.UNKNOWN, offset=90)
    trouble(life, 200)
    for step in range(201, 206):
        life.wait(5).progress(best_step=step)
    assert life.advice().is_active


def test_the_evidence_is_waited_for_before_nonsense_is_acted_on() -> None:
    life = story(Response.STOP, evidence=seconds(15))
    life.testimony.clear()
    trouble(life, 200)
    assert life.wait(14).attempt().advice is None
    assert life.wait(2).advice().decision is Decision.STOP


def test_the_nodes_of_a_story_are_what_the_tests_take_them_for() -> None:
    assert NODES[0] in ONE_ALIKE
    assert not {*NODES} & {*OTHERS}
