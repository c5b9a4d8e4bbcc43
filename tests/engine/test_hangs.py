"""A living attempt that falls silent: confirmed, unconfirmed, or at work after all."""

from __future__ import annotations

import msgspec
import pytest

from relight.engine.cases import AttemptCase, Case
from relight.model.advice import Decision, Disposition, StatusReason
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.incidents import Phase
from relight.model.instants import seconds
from relight.model.jobs import JobState
from relight.model.stimuli import FindingMade
from relight.policy.policies import Response
from relight.testing.stories import KEY
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

IDLE = told("gpu-idle-among-busy", Kind.HANG, nodes=("node-02",))
SPIN = told("gpus-spin", Kind.HANG, domain=Domain.UNKNOWN, remedy=Remedy.RESTART, role=Role.EITHER)
WORK = told("gpus-work", Kind.HANG, role=Role.SYMPTOM, domain=Domain.NONE, remedy=Remedy.REPORT)
XID = told(
    "gpu-xid", Kind.NODE, nodes=("node-02",), provenance=Provenance.KERNEL, detector="signatures"
)
JOINED = told(
    "rank-not-joined",
    Kind.HANG,
    nodes=("node-02",),
    provenance=Provenance.JOB_LOG,
    detector="flight-recorder",
)
DARK = told(
    "node-not-responding",
    Kind.NODE,
    nodes=("node-02",),
    provenance=Provenance.SCHEDULER,
    role=Role.EITHER,
)
DOWN = told("node-down", Kind.NODE, nodes=("node-02",), provenance=Provenance.SCHEDULER)
REBOOTED = told("node-rebooted-by-metrics", Kind.NODE, nodes=("node-02",))
GONE = told("telemetry-gone", Kind.HANG, nodes=("node-02",), role=Role.EITHER)
ALL_IDLE = told(
    "gpus-idle", Kind.HANG, domain=Domain.UNKNOWN, remedy=Remedy.RESTART, role=Role.SYMPTOM
)
DRAINED = told("node-drained", Kind.NODE, nodes=("node-02",), provenance=Provenance.SCHEDULER)


def story(*found: Finding, **fields: object) -> WitnessedStory:
    return WitnessedStory(
        policy_book=witnessed_book(**fields),  # type: ignore[arg-type]  # fields of a policy
        testimony={Witness.TELEMETRY: found},
    )


def closed_as(attempt: AttemptCase) -> str:
    incident = attempt.incident
    assert incident is not None
    assert incident.closed is not None
    return incident.closed.code


@pytest.mark.parametrize("sign", [SPIN, XID, DOWN, GONE, REBOOTED], ids=lambda one: one.rule)
def test_a_silence_that_a_witness_confirms_is_acted_on_at_once(sign: Finding) -> None:
    life = story(sign).begin().fall_silent()
    assert life.advice().while_living
    assert life.advice().decision in (Decision.RESTART, Decision.RESTART_EXCLUDING_NODE)


def test_the_window_begins_ten_minutes_before_the_last_step_and_ends_now() -> None:
    life = story(IDLE).begin()
    stepped = life.now
    life.wait(150)
    window = life.fall_silent().asked[0].window
    assert window.silent_since == stepped
    assert window.since == stepped - seconds(600)
    assert window.until == life.now
    assert window.slow_since is None


def test_a_recorders_culprit_confirms_and_the_recorder_is_asked_only_where_its_path_is_known() -> (
    None
):
    asked = (Witness.TELEMETRY, Witness.FLIGHT_RECORDER)
    for path, count in (("", 1), ("/srv/dumps/rank_", 2)):
        life = WitnessedStory(
            policy_book=witnessed_book(witnesses=asked, flight_recorder=path),
            testimony={Witness.TELEMETRY: (), Witness.FLIGHT_RECORDER: (JOINED,)},
        )
        life.begin().fall_silent()
        assert len(life.asked) == count
        assert (life.attempt().advice is not None) is bool(path)


def test_a_watchdogs_line_confirms() -> None:
    life = story().begin().fall_silent()
    assert life.attempt().advice is None
    life.find("watchdog", kind=Kind.HANG, role=Role.SYMPTOM, domain=Domain.UNKNOWN, offset=2000)
    assert life.advice().while_living


def test_what_nobody_confirms_is_given_ten_minutes_more() -> None:
    life = story().begin().fall_silent()
    assert life.wait(595).attempt().advice is None
    assert life.wait(10).advice().decision is Decision.RESTART
    assert [one.window.until - life.asked[0].window.until for one in life.asked] == [
        seconds(after) for after in (0, 30, 90, 210, 450, 600)
    ], "asked again in doubling pauses, and before acting"


def test_a_drained_node_confirms_nothing() -> None:
    life = story().begin()
    tell(life, DRAINED)
    assert life.fall_silent().wait(595).attempt().advice is None


def test_gpus_at_work_close_the_incident_and_a_later_silence_opens_another() -> None:
    life = story(WORK).begin().fall_silent()
    assert closed_as(life.attempt()) == "work-goes-on"
    life.wait(110)
    life.testimony[Witness.TELEMETRY] = (SPIN,)
    life.fall_silent(count=1)
    assert life.advice().while_living
    assert len(life.attempt().past_incidents) == 1


def test_gpus_that_are_at_work_again_and_again_are_left_alone_every_time() -> None:
    life = story(WORK).begin()
    for count in range(5):
        life.fall_silent(count=count).wait(130)
        assert closed_as(life.attempt()) == "work-goes-on"
    assert life.attempt().advice is None


def test_gpus_that_work_when_looked_at_again_withdraw_the_earlier_suspicion() -> None:
    life = story().begin().fall_silent()
    life.wait(500)
    life.testimony[Witness.TELEMETRY] = (WORK,)
    life.wait(300)
    assert closed_as(life.attempt()) == "work-goes-on"


def test_a_pattern_that_a_second_look_no_longer_shows_confirms_nothing() -> None:
    life = story(SPIN, hang_unconfirmed=seconds(600)).begin()
    life.is_listened_to = False
    life.wait(20)
    life.fall_silent()
    assert life.attempt().advice is None, "not listened to"
    life.testimony[Witness.TELEMETRY] = (WORK,)
    life.wait(100)
    life.is_listened_to = True
    life.wait(30)
    assert life.attempt().advice is None
    assert closed_as(life.attempt()) == "work-goes-on"


def test_work_beside_a_contrary_sign_is_no_work() -> None:
    life = story(WORK, SPIN).begin().fall_silent()
    assert life.advice().while_living


def test_a_witness_that_does_not_answer_is_waited_for_as_long_as_the_policy_says() -> None:
    life = WitnessedStory(policy_book=witnessed_book(hang_unconfirmed=seconds(0)))
    life.begin().fall_silent()
    assert life.wait(14).attempt().advice is None
    assert life.wait(2).advice().while_living


def test_a_witness_that_saw_nothing_confirms_nothing_and_says_so_once() -> None:
    life = WitnessedStory(unseen={Witness.TELEMETRY: "the server is down"})
    life.begin().fall_silent().wait(200)
    life.fall_silent(count=1).wait(200)
    assert life.attempt().advice is None
    assert sum("the server is down" in one for one in life.sentences) == 1


def test_without_witnesses_a_silence_is_unconfirmed() -> None:
    life = WitnessedStory(policy_book=witnessed_book(witnesses=()))
    life.begin().fall_silent()
    assert life.asked == []
    assert life.wait(595).attempt().advice is None
    assert life.wait(10).advice().while_living


@pytest.mark.parametrize(
    ("sign", "acts"),
    [
        (None, False),
        (ALL_IDLE, False),
        (SPIN, False),
        (IDLE, False),
        (GONE, False),
        (XID, False),
        (DARK, False),
        (DOWN, True),
        (REBOOTED, True),
    ],
    ids=lambda one: one.rule if isinstance(one, Finding) else str(one),
)
def test_before_the_first_step_only_the_death_of_a_node_confirms_a_hang(
    sign: Finding | None, *, acts: bool
) -> None:
    life = story(*(() if sign is None else (sign,)))
    life.see(JobState.RUNNING).wait(1900)
    life.fall_silent().wait(1200)
    assert (life.attempt().advice is not None) is acts


def test_a_start_with_a_line_of_trouble_is_acted_on_once_a_node_died() -> None:
    life = story()
    life.see(JobState.RUNNING).wait(1900)
    life.find("ecc", ranks=(1,), tasks=(1,))
    life.wait(100)
    assert life.fall_silent().wait(1200).attempt().advice is None
    life.testimony[Witness.TELEMETRY] = (DOWN,)
    tell(life, DOWN)
    assert life.wait(5).advice().while_living


def test_a_hang_is_only_told_where_the_policy_says_so() -> None:
    life = story(SPIN, hang=Response.REPORT).begin().fall_silent()
    assert life.advice().decision is Decision.NONE
    assert life.advice().reason.code == "hang-reported"
    incident = life.attempt().incident
    assert incident is not None
    assert incident.phase is Phase.ADVISED, "the trouble lasts"
    assert life.wait(900).advice().generation == 1
    for step in (300, 301, 302):
        life.progress(best_step=step).wait(5)
    assert closed_as(life.attempt()) == "recovered-in-place"


def test_steps_that_go_on_close_a_hang_as_they_close_any_line() -> None:
    life = story().begin().fall_silent().wait(60)
    for step in (300, 301, 302):
        life.progress(best_step=step).wait(5)
    assert closed_as(life.attempt()) == "recovered-in-place"
    assert life.wait(900).attempt().advice is None


def test_one_step_takes_the_silence_back_and_a_new_silence_counts_anew() -> None:
    life = story().begin().fall_silent()
    life.wait(300)
    life.progress(best_step=300)
    assert life.wait(900).attempt().advice is None
    life.fall_silent(count=1)
    assert life.wait(590).attempt().advice is None
    assert life.wait(20).advice().while_living


def test_a_step_after_the_advice_withdraws_it() -> None:
    life = story(SPIN).begin().fall_silent()
    life.progress(best_step=300)
    assert life.advice().status.reason is StatusReason.SUPERSEDED


def test_a_hang_is_not_acted_on_where_nobody_listened() -> None:
    life = story(IDLE).begin()
    life.is_listened_to = False
    life.wait(20)
    life.fall_silent().wait(600)
    assert life.attempt().advice is None


def test_a_suspended_job_hangs_not() -> None:
    life = story(IDLE).begin()
    life.see(JobState.SUSPENDED)
    life.fall_silent().wait(900)
    assert life.attempt().advice is None


def test_a_soft_word_of_the_scheduler_alone_restarts_nothing_and_counts_when_trouble_comes() -> (
    None
):
    life = story().begin()
    life.find("node-not-responding", kind=Kind.NODE)
    assert life.attempt().incident is not None, "as a line of the log it opens an incident"
    quiet = story().begin()
    quiet.testimony[Witness.TELEMETRY] = ()
    tell(quiet, DARK)
    assert quiet.wait(900).attempt().incident is None
    quiet = story().begin()
    tell(quiet, DARK)
    quiet.wait(60)
    quiet.fall_silent()
    assert quiet.wait(590).attempt().advice is None, "it may answer again by now"
    assert quiet.wait(20).advice().exclusions == ("node-02",)


def tell(life: WitnessedStory, one: Finding) -> None:
    made = msgspec.structs.replace(one, seen_at=life.now)
    life.take(FindingMade(job=KEY, seen_at=life.now, finding=made))


def test_a_settled_line_is_looked_into_before_it_is_acted_on() -> None:
    life = story(XID).begin()
    life.find("ecc", ranks=(1,), tasks=(1,), offset=5000)
    assert life.asked == []
    life.wait(61)
    assert [one.witness for one in life.asked] == [Witness.TELEMETRY]
    assert life.advice().while_living


def test_a_settled_line_restarts_nothing_while_the_gpus_work() -> None:
    life = story(WORK).begin()
    life.find("ecc", ranks=(1,), tasks=(1,), offset=5000)
    assert life.wait(900).attempt().advice is None
    life.testimony[Witness.TELEMETRY] = ()
    assert life.wait(70).advice().while_living


def test_a_hold_on_a_living_job_is_pending_until_its_time() -> None:
    stalled = told(
        "storage-wait", Kind.SLOW, domain=Domain.STORAGE, remedy=Remedy.HOLD, role=Role.ROOT
    )
    life = story(SPIN, stalled).begin().fall_silent()
    assert life.advice().status.disposition is Disposition.PENDING


def test_a_job_whose_gpus_stop_later_in_the_same_silence_is_found_without_another_word() -> None:
    life = story(WORK).begin()
    life.wait(130)
    life.fall_silent().wait(100)
    life.testimony[Witness.TELEMETRY] = (IDLE,)
    assert life.attempt().advice is None
    assert life.wait(400).advice().while_living


def test_the_pauses_between_two_looks_at_working_gpus_grow_with_the_silence() -> None:
    life = story(WORK).begin()
    life.fall_silent().wait(20_000)
    assert life.attempt().advice is None
    assert 8 <= len(life.asked) <= 20
    life.progress(best_step=300)
    count = len(life.asked)
    life.wait(5000)
    assert len(life.asked) == count


def test_work_that_was_seen_in_a_silence_stands_while_metrics_cannot_be_had() -> None:
    life = story(WORK).begin()
    life.fall_silent().wait(3600)
    life.testimony.clear()
    life.unseen[Witness.TELEMETRY] = "the server is down"
    assert life.wait(7200).attempt().advice is None
    assert closed_as(life.attempt()) == "work-goes-on"
    life.unseen.clear()
    life.testimony[Witness.TELEMETRY] = (SPIN,)
    assert life.wait(1900).advice().while_living, "it is asked again and again"


def test_work_that_was_seen_stands_for_a_line_too() -> None:
    life = story(WORK).begin()
    life.find("ecc", ranks=(1,), tasks=(1,), offset=5000)
    life.wait(100)
    life.testimony.clear()
    life.unseen[Witness.TELEMETRY] = "the server is down"
    assert life.wait(900).attempt().advice is None


def test_work_of_an_earlier_silence_tells_nothing_of_this_one() -> None:
    life = story(WORK).begin()
    life.fall_silent().wait(100)
    life.progress(best_step=300).wait(10)
    life.testimony.clear()
    life.unseen[Witness.TELEMETRY] = "the server is down"
    life.fall_silent(count=1)
    assert life.wait(700).advice().while_living


def test_a_case_with_all_that_was_asked_and_answered_is_stored_and_read_back() -> None:
    life = story(SPIN).begin().fall_silent()
    written = msgspec.json.encode(life.case)
    assert msgspec.json.decode(written, type=Case) == life.case
