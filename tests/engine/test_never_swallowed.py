"""Trouble beside other trouble, or again: none is swallowed, and none grows for good."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from relight.engine.opening import MOST_PAST
from relight.model.advice import Advice, Decision, Disposition, Mode, StatusReason
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.incidents import Incident, Phase
from relight.model.jobs import JobState
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import FindingMade, OrderDone, PersonSaid, Word
from relight.policy.policies import Response
from relight.testing.stories import KEY, Story
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

XID = told(
    "gpu-xid", Kind.NODE, nodes=("node-02",), provenance=Provenance.KERNEL, detector="signatures"
)
"""What confirms a silence at once."""
WORK = told("gpus-work", Kind.HANG, role=Role.SYMPTOM, domain=Domain.NONE, remedy=Remedy.REPORT)
THROTTLED = told("gpu-throttled", Kind.SLOW, nodes=("node-02",))
DOWN = told(
    "node-down",
    Kind.NODE,
    nodes=("node-02",),
    provenance=Provenance.SCHEDULER,
    detector="scheduler",
)


def story(*found: Finding, mode: Mode = Mode.ACT, **fields: object) -> WitnessedStory:
    life = WitnessedStory(
        policy_book=witnessed_book(mode, **fields),  # type: ignore[arg-type]  # fields of a policy
        testimony={Witness.TELEMETRY: found},
    )
    return life.begin()


def become_slow(life: WitnessedStory, count: int = 0) -> WitnessedStory:
    life.find(
        "slowdown",
        kind=Kind.SLOW,
        role=Role.EITHER,
        domain=Domain.UNKNOWN,
        remedy=Remedy.REPORT,
        detector="slowdown",
        offset=3000 + count,
    )
    return life


def compute_nonsense(
    life: WitnessedStory, count: int = 0, rule: str = "loss-not-a-number"
) -> WitnessedStory:
    life.find(
        rule,
        kind=Kind.NUMERIC,
        role=Role.EITHER,
        domain=Domain.APPLICATION,
        remedy=Remedy.REPORT,
        detector="numerics",
        offset=7000 + count,
    )
    return life


def step(life: Story, first: int, last: int, pause: float, checkpoint: int | None = None) -> None:
    for number in range(first, last + 1):
        life.wait(pause)
        life.progress(best_step=number, best_checkpoint=checkpoint)


def incident_of(life: Story) -> Incident:
    incident = life.attempt().incident
    assert incident is not None
    return incident


def closed_as(incident: Incident) -> str:
    return incident.closed.code if incident.closed is not None else ""


def to_be_moved(mode: Mode, **fields: object) -> WitnessedStory:
    """Return a slow job on which a restart at a checkpoint has just been advised."""
    life = become_slow(story(THROTTLED, mode=mode, slow=Response.RESTART, **fields))
    life.progress(best_step=210, best_checkpoint=200)
    assert life.advice().is_active
    return life


def is_withdrawn(advice: Advice) -> bool:
    return advice.status.disposition is Disposition.ABANDONED


def signalled(life: WitnessedStory) -> None:
    advice = life.advice()
    order = Order(
        attempt=advice.attempt, generation=advice.generation, verb=Verb.SIGNAL, signal="USR1"
    )
    done = OrderOutcome(
        order=order,
        outcome=Outcome.DONE,
        answer="",
        ordered_at=life.now,
        answered_at=life.now,
    )
    life.take(OrderDone(job=KEY, seen_at=life.now, outcome=done))


def test_a_restart_of_a_slow_job_is_withdrawn_when_the_old_pace_returns() -> None:
    life = to_be_moved(Mode.APPROVE)
    step(life, 211, 290, 8)
    assert life.advice().is_active, "it is as slow as it was"
    step(life, 291, 500, 3)
    assert life.advice().status.reason is StatusReason.SUPERSEDED
    assert closed_as(incident_of(life)) == "pace-regained"


@pytest.mark.parametrize("mode", [Mode.MONITOR, Mode.APPROVE])
@pytest.mark.parametrize("beginning", [to_be_moved, None])
def test_a_hang_of_a_job_with_another_advice_takes_over(mode: Mode, beginning: object) -> None:
    if beginning is not None:
        life = to_be_moved(mode)
    else:
        life = compute_nonsense(story(mode=mode, numeric=Response.STOP))
        assert life.advice().decision is Decision.STOP
    life.testimony[Witness.TELEMETRY] = (XID,)
    life.fall_silent(count=1)
    life.wait(900)
    assert incident_of(life).kind is Kind.HANG
    assert incident_of(life).phase is Phase.ADVISED
    assert life.advice().exclusions == ("node-02",)
    assert closed_as(life.attempt().past_incidents[-1]) == "another-story"


def test_a_silence_after_the_signal_that_was_sent_belongs_to_the_restart_that_follows() -> None:
    life = to_be_moved(Mode.ACT, signal_first="USR1@300")
    signalled(life)
    life.wait(150)
    life.fall_silent(count=1)
    assert life.advice().is_active
    assert incident_of(life).kind is Kind.SLOW


def test_nonsense_that_a_hang_took_over_is_judged_when_steps_go_on() -> None:
    life = compute_nonsense(story(mode=Mode.APPROVE, numeric=Response.STOP))
    life.fall_silent(count=1)
    assert incident_of(life).kind is Kind.HANG
    step(life, 300, 304, 5)
    assert incident_of(life).kind is Kind.NUMERIC
    assert life.advice().decision is Decision.STOP
    assert life.advice().is_active


def test_a_hang_whose_advice_expired_is_advised_again_and_ever_more_seldom() -> None:
    life = story(XID, mode=Mode.APPROVE)
    life.fall_silent()
    given: list[float] = [life.now]
    for _ in range(24 * 12):
        before = life.advice().generation
        life.wait(300)
        if life.advice().generation > before:
            given.append(life.now)
    pauses = [after - before for before, after in pairwise(given)]
    assert 2 <= len(pauses) <= 6
    assert pauses == sorted(pauses)


def test_a_line_whose_advice_expired_is_advised_again() -> None:
    life = story(mode=Mode.APPROVE)
    life.find("ecc", ranks=(1,), tasks=(1,), offset=9000)
    life.wait(100)
    assert life.advice().is_active
    life.wait(2 * 3600 + 600)
    assert life.advice().generation > 1
    assert life.advice().exclusions == ("node-02",)


def test_a_hang_whose_advice_expired_is_over_when_a_step_is_completed() -> None:
    life = story(XID, mode=Mode.APPROVE)
    life.fall_silent().wait(3650)
    assert is_withdrawn(life.advice())
    life.progress(best_step=300).wait(20_000)
    assert life.advice().generation == 1


def test_bad_numbers_whose_advice_expired_are_advised_on_again() -> None:
    life = compute_nonsense(story(mode=Mode.APPROVE, numeric=Response.STOP))
    given = 0
    for number in range(24 * 12):
        life.wait(300)
        life.progress(best_step=300 + number)
        given = max(given, life.advice().generation)
    assert 3 <= given <= 6
    assert life.advice().decision is Decision.STOP


def test_a_slow_job_that_a_hang_took_over_is_moved_after_it_steps_again() -> None:
    life = become_slow(story(THROTTLED, mode=Mode.APPROVE, slow=Response.RESTART))
    life.fall_silent(count=1).wait(4300)
    assert closed_as(incident_of(life)) == "abandoned-advice-expired"
    life.progress(best_step=300, best_checkpoint=100)
    assert incident_of(life).kind is Kind.SLOW
    assert incident_of(life).plan is not None


@pytest.mark.parametrize("sign", [XID, WORK], ids=lambda one: one.rule)
def test_where_a_story_closes_it_is_known_when_it_is_looked_at_again(sign: Finding) -> None:
    life = story(sign, mode=Mode.MONITOR).fall_silent()
    life.is_listened_to = False
    if sign is XID:
        assert life.advice().expires_at is not None
        life.wait(3600)
        assert is_withdrawn(life.advice())
    assert incident_of(life).phase is Phase.CLOSED
    assert life.case.wake_at is not None
    assert life.case.wake_at > life.now


def test_a_hang_that_a_person_has_rejected_is_not_advised_again() -> None:
    life = story(XID, mode=Mode.APPROVE)
    life.fall_silent()
    no = PersonSaid(
        job=KEY, seen_at=life.now, attempt=0, generation=1, word=Word.REJECT, who="alice"
    )
    life.take(no)
    assert life.advice().status.reason is StatusReason.CHANGED_BY_PERSON
    assert life.wait(20_000).advice().generation == 1


@pytest.mark.parametrize("count", [200, 400])
def test_a_flood_of_lines_hides_no_hang(count: int) -> None:
    life = story(XID)
    for number in range(count):
        life.find(f"warning-{number}", offset=10 + number, role=Role.SYMPTOM)
    step(life, 300, 304, 30)
    assert life.fall_silent(count=3).advice().exclusions == ("node-02",)
    assert len(life.attempt().findings) <= 210


def test_a_flood_of_nonsense_hides_no_hang_and_is_bounded() -> None:
    life = story(XID)
    for number in range(300):
        compute_nonsense(life, number)
    assert life.fall_silent(count=3).advice().exclusions == ("node-02",)
    assert len(life.attempt().findings) <= 100
    assert compute_nonsense(life, 300).attempt().findings[0].id == "loss-not-a-number-0-7000"


def test_a_caught_exception_does_not_end_what_is_planned_for_a_slow_job() -> None:
    life = become_slow(story(THROTTLED, slow=Response.RESTART))
    assert incident_of(life).plan is not None
    life.find("root-line", offset=8000)
    assert incident_of(life).kind is Kind.CRASH
    step(life, 300, 305, 30, checkpoint=100)
    assert incident_of(life).kind is Kind.SLOW
    assert incident_of(life).plan is not None
    life.progress(best_step=306, best_checkpoint=306)
    assert life.advice().exclusions == ("node-02",)


def test_a_caught_exception_leaves_a_slow_job_told_of_once() -> None:
    life = become_slow(story(slow=Response.REPORT))
    life.find("root-line", offset=8000)
    step(life, 300, 330, 8)
    assert incident_of(life).kind is Kind.SLOW
    assert incident_of(life).phase is Phase.ADVISED
    assert life.advice().reason.code == "slowdown-reported"
    count = life.advice().generation
    step(life, 331, 360, 8)
    assert life.advice().generation == count


def test_numbers_that_are_told_leave_a_slow_job_what_is_planned_for_it() -> None:
    life = become_slow(story(THROTTLED, slow=Response.RESTART))
    compute_nonsense(life)
    assert life.advice().reason.code == "numeric-reported"
    life.wait(5)
    assert incident_of(life).plan is not None
    for count in range(1, 20):
        compute_nonsense(life, count)
        life.progress(best_step=300 + count, best_checkpoint=100)
    assert life.advice().generation == 1
    life.progress(best_step=400, best_checkpoint=400)
    assert life.advice().exclusions == ("node-02",)


def test_numbers_that_are_acted_on_come_before_the_move_of_a_slow_job() -> None:
    life = to_be_moved(Mode.APPROVE, numeric=Response.STOP)
    compute_nonsense(life)
    assert life.advice().decision is Decision.STOP
    assert life.advice().is_active


def test_a_line_in_a_slow_job_that_was_suspended_is_still_what_it_stands_still_by() -> None:
    life = become_slow(story(mode=Mode.APPROVE, slow=Response.REPORT))
    life.find("ecc", ranks=(1,), tasks=(1,), offset=9000)
    life.wait(100)
    assert life.advice().is_active
    life.see(JobState.SUSPENDED).wait(600)
    life.see(JobState.RUNNING).wait(400)
    assert life.advice().exclusions == ("node-02",)
    assert life.advice().is_active


def told_late(life: WitnessedStory) -> WitnessedStory:
    made = msgspec.structs.replace(DOWN, seen_at=life.now, at=life.now)
    life.take(FindingMade(job=KEY, seen_at=life.now, finding=made))
    return life


@pytest.mark.parametrize("witnesses", [(), (Witness.TELEMETRY,)])
def test_the_schedulers_late_word_is_weighed_while_nothing_is_ordered(
    witnesses: tuple[Witness, ...],
) -> None:
    life = WitnessedStory(
        policy_book=witnessed_book(Mode.APPROVE, witnesses), testimony={Witness.TELEMETRY: ()}
    )
    life.begin().see(JobState.FAILED, exit_status=1).progress(final=True)
    life.wait(100)
    assert life.advice().decision is Decision.RESTART
    told_late(life)
    assert life.advice().exclusions == ("node-02",)
    assert life.advice().is_active
    count = len(life.sentences)
    life.wait(20)
    assert not [one for one in life.sentences[count:] if "verdict" in one]


def test_the_schedulers_late_word_explains_an_end_whose_logs_nobody_could_read() -> None:
    life = story()
    life.see(JobState.FAILED, exit_status=1).progress(final=True, logs_unseen="permission denied")
    life.wait(60)
    assert life.advice().reason.code == "report-only"
    told_late(life).wait(1)
    assert life.advice().exclusions == ("node-02",)
    assert life.advice().is_active
    assert life.wait(20).advice().generation == 2


def test_a_late_word_changes_nothing_once_the_job_runs_again() -> None:
    life = story()
    life.see(JobState.FAILED, exit_status=1).progress(final=True, logs_unseen="permission denied")
    life.wait(60)
    life.see(JobState.RUNNING, 1).wait(5)
    told_late(life).wait(5)
    assert life.advice().reason.code == "report-only"


def test_looks_at_working_gpus_do_not_make_the_case_grow() -> None:
    life = story(WORK)
    life.fall_silent().wait(20 * 3600)
    assert len(life.asked) > MOST_PAST
    assert len(life.attempt().past_incidents) <= 1
    life.progress(best_step=300)
    life.fall_silent(count=1)
    assert len(life.attempt().past_incidents) == 1


def test_only_the_last_stories_are_kept_whole_and_the_numbers_go_on() -> None:
    life = story(WORK)
    for count in range(MOST_PAST + 10):
        life.fall_silent(count=count).wait(30)
        life.progress(best_step=300 + count)
    assert len(life.attempt().past_incidents) == MOST_PAST
    assert incident_of(life).id == f"main:7-0.{MOST_PAST + 10}"
    life.see(JobState.FAILED, exit_status=1).progress(final=True)
    verdict = incident_of(life).verdict
    assert verdict is not None
    assert verdict.cause == "unknown-failure", "what it lived through explains no end"


def test_nonsense_that_is_only_told_is_told_once_a_rule() -> None:
    life = story()
    for count in range(60):
        compute_nonsense(life, count).wait(30)
        life.progress(best_step=300 + 10 * count)
    assert life.advice().generation == 1
    assert len(life.asked) == 1
    compute_nonsense(life, 60, "loss-spike")
    assert life.advice().generation == 2
    assert len(life.attempt().past_incidents) <= 1


def test_nonsense_that_was_told_hides_no_hang() -> None:
    life = compute_nonsense(story(XID))
    life.fall_silent(count=1)
    assert life.advice().exclusions == ("node-02",)


def test_a_job_that_went_on_after_it_was_stopped_by_a_person_is_given_its_own_time() -> None:
    life = story()
    life.wait(130)
    life.fall_silent()
    assert incident_of(life).phase is Phase.DIAGNOSED
    life.see(JobState.SUSPENDED).wait(3600)
    life.see(JobState.RUNNING)
    assert closed_as(incident_of(life)) == "suspended"
    life.testimony[Witness.TELEMETRY] = (XID,)
    life.wait(60)
    life.fall_silent(count=1)
    assert life.attempt().advice is None, "its silence was its suspension"
    life.wait(300)
    assert life.advice().exclusions == ("node-02",)


def test_a_job_that_hangs_on_after_a_suspension_is_found_without_another_word() -> None:
    life = story(XID, mode=Mode.APPROVE)
    life.fall_silent()
    life.see(JobState.SUSPENDED).wait(600)
    life.see(JobState.RUNNING).wait(2400)
    assert life.advice().is_active
    window = life.asked[-1].window
    assert window.silent_since is not None
    assert window.silent_since >= life.now - 2400_000_000


def test_a_job_that_steps_after_a_suspension_is_left_alone() -> None:
    life = story(XID, mode=Mode.APPROVE)
    life.fall_silent()
    life.see(JobState.SUSPENDED).wait(600)
    life.see(JobState.RUNNING)
    life.progress(best_step=300).wait(5000)
    assert not life.advice().is_active
    assert life.attempt().incident is not None
