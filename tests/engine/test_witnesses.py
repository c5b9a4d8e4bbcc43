"""Witnesses beside the logs: asked once a trouble, waited for briefly, believed with care."""

from __future__ import annotations

import msgspec
import pytest

from relight.engine.cases import Occasion
from relight.engine.witnesses import MOST_BLIND, MOST_LOOKS
from relight.model.advice import Decision
from relight.model.evidence import Witness
from relight.model.findings import Finding, Kind, Provenance
from relight.model.instants import seconds
from relight.model.jobs import JobState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import EvidenceSeen, FindingMade, OrderDone
from relight.testing.stories import KEY
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

XID = told("gpu-xid", Kind.NODE, nodes=("node-02",), provenance=Provenance.KERNEL)
ALL = (Witness.TELEMETRY, Witness.KERNEL_LOG, Witness.FLIGHT_RECORDER)


def story(**testimony: tuple[Finding, ...]) -> WitnessedStory:
    return WitnessedStory(
        policy_book=witnessed_book(witnesses=(Witness.TELEMETRY, Witness.KERNEL_LOG)),
        testimony={Witness(name): found for name, found in testimony.items()},
    )


def failed(life: WitnessedStory) -> WitnessedStory:
    life.find("ecc", ranks=(2,), tasks=(2,), offset=70)
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    return life


def test_an_end_that_is_a_failure_asks_every_witness_once() -> None:
    life = failed(story(telemetry=(), kernel_log=()).begin())
    assert [one.witness for one in life.asked] == [Witness.TELEMETRY, Witness.KERNEL_LOG]
    window = life.asked[0].window
    assert (window.silent_since, window.slow_since) == (None, None)
    assert window.until == life.now
    assert window.allocation == life.attempt().allocation
    assert life.advice().decision is Decision.RESTART_EXCLUDING_NODE


@pytest.mark.parametrize(
    "state", [JobState.COMPLETED, JobState.CANCELLED, JobState.TIMEOUT, JobState.PREEMPTED]
)
def test_an_end_that_is_no_failure_asks_nobody(state: JobState) -> None:
    life = story().begin()
    life.see(state).progress(final=True)
    assert life.asked == []


def test_an_end_waits_for_the_witnesses_as_long_as_the_policy_says_and_no_longer() -> None:
    life = failed(story(telemetry=()).begin())
    assert life.attempt().advice is None
    assert life.wait(14).attempt().advice is None
    assert life.wait(2).advice().decision is Decision.RESTART_EXCLUDING_NODE


def test_what_a_kernel_log_shows_counts_though_the_log_is_silent_of_it() -> None:
    life = story(telemetry=(), kernel_log=(XID,)).begin()
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert life.advice().exclusions == ("node-02",)


def test_five_minutes_after_an_end_witnesses_are_asked_once_more_and_no_third_time() -> None:
    life = failed(story(telemetry=(), kernel_log=()).begin())
    assert len(life.wait(290).attempt().looks) == 2
    life.wait(20)
    assert [one.occasion for one in life.attempt().looks[2:]] == [Occasion.LATER] * 2
    life.wait(1200)
    assert len(life.asked) == 4


def test_later_evidence_changes_advice_that_nobody_has_followed_yet() -> None:
    life = story(telemetry=(), kernel_log=()).begin()
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert life.advice().exclusions == ()
    life.testimony[Witness.KERNEL_LOG] = (XID,)
    life.wait(310)
    assert life.advice().generation == 2
    assert life.advice().exclusions == ("node-02",)
    assert any("Later evidence" in one for one in life.sentences)


def test_later_evidence_is_only_written_down_once_something_was_ordered() -> None:
    life = story(telemetry=(), kernel_log=()).begin()
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    order = Order(attempt=life.advice().attempt, generation=1, verb=Verb.REQUEUE)
    done = OrderOutcome(
        order=order, outcome=Outcome.DONE, answer="", ordered_at=life.now, answered_at=life.now
    )
    life.take(OrderDone(job=KEY, seen_at=life.now, outcome=done))
    life.testimony[Witness.KERNEL_LOG] = (XID,)
    life.wait(310)
    assert life.advice().generation == 1
    incident = life.attempt().incident
    assert incident is not None
    assert incident.verdict is not None
    assert incident.verdict.revision == 2
    assert [one.node for one in incident.verdict.suspects] == ["node-02"]


def test_an_answer_that_comes_after_its_time_is_later_evidence() -> None:
    life = story(telemetry=()).begin()
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    life.wait(30)
    until = life.asked[0].window.until
    made = msgspec.structs.replace(XID, seen_at=until)
    life.take(FindingMade(job=KEY, seen_at=life.now, finding=made))
    assert life.advice().generation == 1, "not answered yet"
    life.answer(Witness.KERNEL_LOG, 0, until, found=1)
    assert life.advice().exclusions == ("node-02",)


def test_evidence_that_says_the_same_makes_no_new_generation() -> None:
    life = failed(story(telemetry=(), kernel_log=()).begin())
    life.wait(400)
    assert life.advice().generation == 1


def test_what_a_witness_cannot_see_is_told_once_and_never_read_as_health() -> None:
    life = story(telemetry=()).begin()
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    blind = tuple(f"No series {number}." for number in range(100))
    for _ in range(2):
        life.take(
            EvidenceSeen(
                job=KEY,
                seen_at=life.now,
                attempt=0,
                witness=Witness.KERNEL_LOG,
                until=life.now,
                blind=("No kernel log of node-02." * 100, *blind),
                unseen="permission denied",
            )
        )
    told_blind = [one for one in life.sentences if "relight doctor lists them" in one]
    assert told_blind == [
        f"Kernel log cannot see {MOST_BLIND} things of this job: relight doctor lists them."
    ]
    assert sum("no sign of health" in one for one in life.sentences) == 1
    assert len(life.attempt().blind) == MOST_BLIND


def test_what_a_witness_says_at_the_end_counts_though_it_was_said_while_the_job_was_slow() -> None:
    life = story(telemetry=(), kernel_log=(XID,)).begin()
    life.find("slowdown", kind=Kind.SLOW, detector="slowdown", offset=3000)
    for step in range(300, 340):
        life.wait(30)
        life.progress(best_step=step)
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert life.advice().exclusions == ("node-02",)


def test_an_answer_that_nobody_asked_for_changes_nothing() -> None:
    life = story().begin()
    before = life.case
    life.answer(Witness.TELEMETRY, 0, life.now)
    life.answer(Witness.TELEMETRY, 9, life.now)
    assert life.case == before


def test_what_is_kept_of_questions_is_bounded() -> None:
    life = story(telemetry=(), kernel_log=()).begin()
    for count in range(40):
        life.fall_silent(count=count)
        life.wait(61)
    assert len(life.attempt().looks) <= MOST_LOOKS


def test_a_flood_of_lines_does_not_hide_what_a_witness_says() -> None:
    life = story(telemetry=(), kernel_log=(XID,)).begin()
    for number in range(250):
        life.find(f"line-{number}", offset=number, ranks=(2,), tasks=(2,))
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert any(one.rule == "gpu-xid" for one in life.attempt().findings)


def test_evidence_of_a_trouble_long_past_is_no_evidence_of_this_end() -> None:
    life = story(telemetry=(), kernel_log=()).begin()
    early = msgspec.structs.replace(XID, seen_at=life.now)
    life.take(FindingMade(job=KEY, seen_at=life.now, finding=early))
    for step in range(300, 360):
        life.wait(30)
        life.progress(best_step=step)
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    assert life.advice().exclusions == ()


def test_no_wait_at_all_still_asks() -> None:
    life = WitnessedStory(policy_book=witnessed_book(evidence=seconds(0))).begin()
    failed(life)
    assert len(life.asked) == 1
    assert life.advice().decision is Decision.RESTART_EXCLUDING_NODE
