"""GPUs that wait for one: a checkpoint looks like a hang, so that a node is blamed by two looks."""

from __future__ import annotations

import msgspec
import pytest

from relight.model.advice import Decision
from relight.model.evidence import Witness
from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.incidents import Phase
from relight.model.instants import in_seconds
from relight.testing.witnessed import WitnessedStory, told, witnessed_book

IDLE = told("gpu-idle-among-busy", Kind.HANG, nodes=("node-01",))
OTHER = msgspec.structs.replace(IDLE, id="witness-other", nodes=("node-03",))
SPIN = told("gpus-spin", Kind.HANG, domain=Domain.UNKNOWN, remedy=Remedy.RESTART, role=Role.SYMPTOM)
ALL_IDLE = told(
    "gpus-idle", Kind.HANG, domain=Domain.UNKNOWN, remedy=Remedy.RESTART, role=Role.SYMPTOM
)
WORK = told("gpus-work", Kind.HANG, role=Role.BENIGN, domain=Domain.NONE, remedy=Remedy.REPORT)


def silent(*found: Finding, after: float = 121, **fields: object) -> WitnessedStory:
    life = WitnessedStory(
        policy_book=witnessed_book(**fields),  # type: ignore[arg-type]  # fields of a policy
        testimony={Witness.TELEMETRY: found},
    )
    life.begin().wait(after)
    return life.fall_silent()


def see(life: WitnessedStory, *found: Finding) -> WitnessedStory:
    life.testimony[Witness.TELEMETRY] = found
    return life


@pytest.mark.parametrize(("after", "apart"), [(0, 15), (20, 20), (60, 60), (121, 121), (900, 300)])
def test_the_second_look_comes_after_as_long_again_within_bounds(
    after: float, apart: float
) -> None:
    life = silent(IDLE, after=after)
    assert life.attempt().advice is None
    assert life.wait(apart + 1).advice().exclusions == ("node-01",)
    first, second = (one.window.until for one in life.asked)
    assert in_seconds(second - first) == pytest.approx(apart, abs=1)


@pytest.mark.parametrize("later", [(), (WORK,), (ALL_IDLE,)], ids=["nothing", "work", "all idle"])
def test_one_look_alone_blames_no_node(later: tuple[Finding, ...]) -> None:
    life = see(silent(IDLE), *later)
    assert life.wait(590).attempt().advice is None


def test_after_the_patience_it_is_restarted_and_no_node_is_left_out() -> None:
    life = see(silent(IDLE))
    assert life.wait(620).advice().decision is Decision.RESTART
    assert life.advice().exclusions == ()


def test_looks_that_name_different_nodes_do_not_agree_and_the_next_may() -> None:
    life = see(silent(IDLE), OTHER)
    assert life.wait(240).attempt().advice is None
    assert life.wait(130).advice().exclusions == ("node-03",)


def test_a_look_that_saw_nothing_is_made_again() -> None:
    life = silent(IDLE)
    life.testimony.clear()
    life.unseen[Witness.TELEMETRY] = "the server is down"
    assert life.wait(70).attempt().advice is None
    life.unseen.clear()
    assert see(life, IDLE).wait(70).advice().exclusions == ("node-01",)


def test_a_step_between_two_looks_makes_them_looks_at_two_silences() -> None:
    life = silent(IDLE)
    life.wait(30)
    life.progress(best_step=300)
    see(life, msgspec.structs.replace(IDLE, id="in-the-next-silence")).wait(121)
    life.fall_silent(count=1)
    assert life.wait(115).attempt().advice is None
    assert life.wait(10).advice().exclusions == ("node-01",)


def test_a_line_restarts_and_leaves_no_node_out_that_one_look_named() -> None:
    life = silent(IDLE, after=0)
    life.find("fatal", kind=Kind.CRASH, domain=Domain.UNKNOWN, remedy=Remedy.RESTART, offset=5000)
    see(life)
    assert life.wait(120).advice().exclusions == ()


@pytest.mark.parametrize("found", [ALL_IDLE, None], ids=["all idle", "nothing"])
def test_a_save_that_is_not_announced_is_given_its_ten_minutes(found: Finding | None) -> None:
    life = silent(*(() if found is None else (found,)))
    assert life.wait(590).attempt().advice is None
    for step in (300, 310, 320):
        life.progress(best_step=step).wait(5)
    incident = life.attempt().incident
    assert incident is not None
    assert incident.phase is Phase.CLOSED
    assert life.wait(3000).attempt().advice is None


def test_a_line_in_a_silence_asks_about_the_silence_so_that_work_can_be_seen() -> None:
    life = silent(WORK)
    count = len(life.asked)
    life.wait(30)
    life.find("xid", kind=Kind.CRASH, offset=8000)
    assert life.wait(600).attempt().advice is None
    assert len(life.asked) > count
    stepped = life.attempt().stepped_at
    assert all(one.window.silent_since == stepped for one in life.asked[count:])
