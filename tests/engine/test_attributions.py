"""A second opinion from outside: asked once a cause, told beside ours, taken up with care."""

from __future__ import annotations

import pytest

from relight.model.advice import Action, Decision, Mode
from relight.model.evidence import Witness
from relight.model.findings import Domain, Kind, Provenance, Remedy
from relight.model.jobs import JobState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import AttributionGiven, OrderDone, PersonSaid, Word
from relight.testing.stories import KEY
from relight.testing.witnessed import WitnessedStory, told, witnessed_book


def story(mode: Mode = Mode.ACT, **fields: object) -> WitnessedStory:
    book = witnessed_book(mode, witnesses=(), is_attributed=True, **fields)
    return WitnessedStory(policy_book=book).begin()


def unexplained(life: WitnessedStory) -> WitnessedStory:
    """Let it fail by something that asks for a plain restart and names no node."""
    life.find("passing", domain=Domain.UNKNOWN, remedy=Remedy.RESTART, offset=60)
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    return life


def broken(life: WitnessedStory) -> WitnessedStory:
    """Let it fail by the hardware of a node that its log names."""
    life.find("ecc", ranks=(2,), tasks=(2,), offset=60)
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    return life


def give(life: WitnessedStory, **fields: object) -> WitnessedStory:
    base: dict[str, object] = {
        "job": KEY,
        "seen_at": life.now,
        "attempt": 0,
        "provider": "site",
        "domain": Domain.HARDWARE,
        "cause": "gpu",
        "nodes": ("node-01",),
        "confidence": 0.9,
    }
    life.take(AttributionGiven(**(base | fields)))  # type: ignore[arg-type]  # fields of the record
    return life


def ordered(life: WitnessedStory) -> WitnessedStory:
    order = Order(attempt=life.advice().attempt, generation=1, verb=Verb.REQUEUE)
    done = OrderOutcome(
        order=order, outcome=Outcome.DONE, answer="", ordered_at=life.now, answered_at=life.now
    )
    life.take(OrderDone(job=KEY, seen_at=life.now, outcome=done))
    return life


def test_a_verdict_is_asked_about_once_and_advice_does_not_wait_for_the_answer() -> None:
    life = unexplained(story())
    assert life.advice().decision is Decision.RESTART
    life.wait(600)
    assert len(life.attributions_asked) == 1
    asked = life.attributions_asked[0]
    assert asked.ours is not None
    assert asked.ours.cause == "passing"
    assert asked.is_living, "the line was judged before the attempt ended"


def test_another_cause_is_asked_about_again() -> None:
    book = witnessed_book(witnesses=(Witness.KERNEL_LOG,), is_attributed=True)
    life = WitnessedStory(policy_book=book, testimony={Witness.KERNEL_LOG: ()}).begin()
    unexplained(life)
    xid = told("gpu-xid", Kind.NODE, nodes=("node-02",), provenance=Provenance.KERNEL)
    life.testimony[Witness.KERNEL_LOG] = (xid,)
    life.wait(310)
    causes = [one.ours.cause for one in life.attributions_asked if one.ours is not None]
    assert causes[0] == "passing"
    assert len(causes) == len(set(causes)) == 2


@pytest.mark.parametrize("state", [JobState.CANCELLED, JobState.COMPLETED])
def test_an_end_that_is_no_failure_is_nobodys_business(state: JobState) -> None:
    life = story()
    life.see(state).progress(final=True)
    assert life.attributions_asked == []


def test_without_a_service_nobody_is_asked() -> None:
    life = WitnessedStory(policy_book=witnessed_book(witnesses=())).begin()
    assert unexplained(life).attributions_asked == []


def test_a_slow_answer_adds_a_node_while_nothing_is_ordered() -> None:
    life = unexplained(story())
    life.wait(60)
    give(life)
    assert life.advice().generation == 2
    assert life.advice().decision is Decision.RESTART_EXCLUDING_NODE
    assert life.advice().exclusions == ("node-01",)
    assert "site blames node-01" in life.advice().reason.sentence
    assert any("theirs is taken up" in one for one in life.sentences)


def test_an_answer_before_the_advice_is_in_its_first_generation() -> None:
    life = story()
    life.find("passing", domain=Domain.UNKNOWN, remedy=Remedy.RESTART, offset=60)
    life.see(JobState.FAILED, exit_status=1)
    give(life)
    life.progress(final=True)
    assert (life.advice().generation, life.advice().exclusions) == (1, ("node-01",))


@pytest.mark.parametrize(
    "fields",
    [
        {"nodes": ("node-99",)},
        {"nodes": ("node-01", "node-02")},
        {"nodes": ()},
        {"confidence": 0.5},
        {"domain": Domain.APPLICATION},
        {"domain": Domain.STORAGE},
        {"decision": Decision.STOP},
        {"decision": Decision.NONE},
    ],
)
def test_an_answer_that_may_not_change_the_advice_is_only_told(fields: dict[str, object]) -> None:
    life = give(unexplained(story()), **fields)
    assert life.advice().generation == 1
    assert life.advice().decision is Decision.RESTART
    assert any("relight's own stands" in one for one in life.sentences)


def test_what_our_own_verdict_names_stands() -> None:
    life = give(broken(story()))
    assert life.advice().exclusions == ("node-03",)
    assert life.advice().generation == 1


def test_both_saying_the_same_is_told() -> None:
    life = give(broken(story()), nodes=("node-03.cluster.example",))
    assert any("both say the same" in one for one in life.sentences)
    assert life.advice().generation == 1


def test_a_stop_is_never_turned_into_a_restart() -> None:
    life = story()
    life.find("module-not-found", domain=Domain.USER, remedy=Remedy.STOP, offset=60)
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    give(life, decision=Decision.RESTART)
    assert life.advice().decision is Decision.STOP
    assert life.advice().generation == 1


def test_an_answer_after_the_order_comes_too_late_and_says_so() -> None:
    life = give(ordered(unexplained(story())))
    assert life.advice().generation == 1
    assert any("came too late" in one for one in life.sentences)


def test_what_a_person_approved_is_not_changed_under_their_hands() -> None:
    life = unexplained(story(Mode.APPROVE))
    yes = PersonSaid(
        job=KEY, seen_at=life.now, attempt=0, generation=1, word=Word.APPROVE, who="olivia"
    )
    life.take(yes)
    give(life)
    assert life.advice().generation == 2
    assert life.advice().exclusions == ()


def test_a_policy_that_may_not_exclude_is_not_asked_to() -> None:
    life = give(unexplained(story(may=(Action.REQUEUE,))))
    assert life.advice().decision is Decision.RESTART
    assert life.advice().permit is not None


def test_no_answer_changes_nothing_and_is_told() -> None:
    life = unexplained(story())
    give(life, unseen="it took longer than 4 minutes")
    assert life.advice().generation == 1
    assert life.attempt().attributions == ()
    assert any("which changes nothing" in one for one in life.sentences)


def test_what_is_kept_of_answers_is_bounded() -> None:
    life = unexplained(story())
    for _ in range(30):
        give(life, sentence="x" * 5000, nodes=())
    assert len(life.attempt().attributions) == 8
    assert all(len(one.sentence) <= 400 for one in life.attempt().attributions)
