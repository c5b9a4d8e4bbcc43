"""Sweeps over a stand-in for the commands: what happens when an answer is not whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from relight.clients.slurm import Commands, SlurmEyes
from relight.clients.slurm.listings import LISTING
from relight.model.jobs import JobFact, JobState, NodeFact
from relight.model.seen import Seen, Unseen

WIDTHS = [int(part.partition(":")[2]) for part in LISTING[-1].partition("=")[2].split(",")]
STAND_IN = """#!/bin/sh
cd {folder}
printf '%s ' "$@" >> calls; echo >> calls
case " $* " in
  *" --version "*) cat version ;;
  *" --json "*) cat detail ;;
  *) cat listing ;;
esac
test ! -e fail
"""


class FakeSlurm:
    """A folder with ``squeue`` and ``scontrol`` that print what a test puts there."""

    def __init__(self, folder: Path, version: str = "slurm 24.11.5") -> None:
        self.folder = folder
        for name in ("squeue", "scontrol", "sinfo"):
            (folder / name).write_text(STAND_IN.format(folder=folder))
            (folder / name).chmod(0o755)
        (folder / "version").write_text(version)
        self.eyes = SlurmEyes("main", Commands({"PATH": os.defpath}, bin_dir=folder))

    def say(self, lines: list[str], detail: object) -> None:
        """Set what the cheap listing and the JSON say."""
        (self.folder / "listing").write_text("".join(f"{line}\n" for line in lines))
        text = detail if isinstance(detail, str) else json.dumps({"jobs": detail})
        (self.folder / "detail").write_text(text)

    def calls(self) -> list[str]:
        """Return the commands since the last call."""
        path = self.folder / "calls"
        calls = path.read_text().splitlines()
        path.write_text("")
        return calls

    def sweep(self) -> dict[str, JobFact]:
        """Return the facts of a sweep that must succeed, by id."""
        seen = self.eyes.jobs()
        assert isinstance(seen, Seen), seen
        return {fact.scheduler_id: fact for fact in seen.value}


@pytest.fixture
def slurm(tmp_path: Path) -> FakeSlurm:
    return FakeSlurm(tmp_path)


def line(job: str, state: str = "RUNNING", *, restarts: int = 0) -> str:
    cells = [job, state, str(restarts), "100", "2026-01-01T00:00:00", "N/A", "None", "(null)", "n1"]
    return "".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))


def detail(job: int, state: str = "RUNNING", **fields: object) -> dict[str, object]:
    return {"job_id": job, "job_state": [state], **fields}


def test_detail_is_asked_for_only_of_what_changed(slurm: FakeSlurm) -> None:
    slurm.say([line("1"), line("2")], [detail(1), detail(2)])
    first = slurm.sweep()
    assert any("--jobs 1,2 " in call for call in slurm.calls())
    second = slurm.sweep()
    assert all(first[job] is second[job] for job in first)
    assert len(slurm.calls()) == 1
    slurm.say([line("1"), line("2", "FAILED")], [detail(2, "FAILED")])
    third = slurm.sweep()
    assert third["1"] is first["1"]
    assert third["2"].state is JobState.FAILED
    assert any("--jobs 2 " in call for call in slurm.calls())


def test_an_attempt_that_failed_and_came_back_between_two_looks_is_new(slurm: FakeSlurm) -> None:
    slurm.say([line("1")], [detail(1)])
    slurm.sweep()
    slurm.say([line("1", restarts=1)], [detail(1, restart_cnt=1)])
    assert slurm.sweep()["1"].restart_count == 1


def test_a_release_that_ignores_the_ids_is_asked_for_everything(tmp_path: Path) -> None:
    slurm = FakeSlurm(tmp_path, "slurm-wlm 22.05.8")
    slurm.say([line("1")], [detail(1)])
    assert slurm.sweep()["1"].state is JobState.RUNNING
    assert not any("--jobs" in call for call in slurm.calls())


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([{"job_id": 1, "job_state": 7}, detail(2)], id="of another shape"),
        pytest.param([detail(1, nodes="n[1-"), detail(2)], id="with an impossible host list"),
        pytest.param([detail(2)], id="missing"),
    ],
)
def test_a_job_without_readable_detail_is_unknown_and_asked_for_again(
    slurm: FakeSlurm, records: list[object]
) -> None:
    slurm.say([line("1", restarts=2), line("2")], records)
    facts = slurm.sweep()
    assert (facts["1"].state, facts["1"].restart_count) == (JobState.UNKNOWN, 2)
    assert facts["2"].state is JobState.RUNNING
    slurm.say([line("1", restarts=2), line("2")], [detail(1, restart_cnt=2), detail(2)])
    assert slurm.sweep()["1"].state is JobState.RUNNING


def test_an_unreadable_task_is_not_taken_for_its_waiting_array(slurm: FakeSlurm) -> None:
    array = detail(8, "PENDING", array_job_id=8, array_task_string="2-3")
    broken = {"job_id": 9, "job_state": 7, "array_job_id": 8, "array_task_id": 1}
    slurm.say([line("8_1"), line("8_2", "PENDING")], [array, broken])
    assert slurm.sweep()["8_1"].state is JobState.UNKNOWN
    slurm.say([line("8_1"), line("8_2", "PENDING")], [array])
    assert slurm.sweep()["8_2"].state is JobState.PENDING


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        pytest.param([line("1")], "", id="no detail"),
        pytest.param([line("1")], '{"jobs": [', id="half a detail"),
        pytest.param([line("1")], '{"errors": []}', id="a detail about nothing"),
        pytest.param(["slurm_load_jobs error: Socket timed out"], "[]", id="words"),
        pytest.param([line("1"), line("2")[:30]], "[]", id="half a listing"),
        pytest.param([], "", id="nothing at all"),
        pytest.param([], '{"jobs": [{"job_id": 1, "job_state": "RUNNING"}]}', id="a contradiction"),
    ],
)
def test_half_an_answer_is_no_answer(slurm: FakeSlurm, lines: list[str], text: str) -> None:
    slurm.say(lines, text)
    assert isinstance(slurm.eyes.jobs(), Unseen)


def test_no_jobs_are_believed_when_the_json_says_so_too(slurm: FakeSlurm) -> None:
    slurm.say([line("1")], [detail(1)])
    slurm.sweep()
    slurm.say([], [])
    assert slurm.eyes.jobs() == Seen(())


def test_a_failed_command_is_no_answer_and_forgets_nothing(slurm: FakeSlurm) -> None:
    slurm.say([line("1")], [detail(1)])
    before = slurm.sweep()
    (slurm.folder / "fail").touch()
    assert isinstance(slurm.eyes.jobs(), Unseen)
    assert isinstance(slurm.eyes.job("1"), Unseen)
    assert isinstance(slurm.eyes.nodes(), Unseen)
    (slurm.folder / "fail").unlink()
    assert slurm.sweep()["1"] is before["1"]


def test_a_release_that_cannot_be_told_is_no_answer(tmp_path: Path) -> None:
    slurm = FakeSlurm(tmp_path, "who knows")
    slurm.say([line("1")], [detail(1)])
    assert isinstance(slurm.eyes.jobs(), Unseen)
    assert isinstance(slurm.eyes.nodes(), Unseen)


def test_a_broken_node_makes_the_nodes_unseen(slurm: FakeSlurm) -> None:
    slurm.say([], '{"nodes": [{"name": "n1", "state": ["IDLE"]}, {"name": 7}]}')
    assert isinstance(slurm.eyes.nodes(), Unseen)
    slurm.say([], '{"nodes": [{"name": "n1", "state": ["IDLE"]}]}')
    assert isinstance(slurm.eyes.nodes(), Seen)


def test_a_start_that_wavers_by_seconds_is_the_same_start(slurm: FakeSlurm) -> None:
    def started(at: int) -> NodeFact:
        slurm.say([], f'{{"nodes": [{{"name": "n1", "state": ["IDLE"], "boot_time": {at}}}]}}')
        seen = slurm.eyes.nodes()
        assert isinstance(seen, Seen)
        return seen.value[0]

    first = started(1_000)
    assert started(1_002) == started(997) == first
    assert started(1_060) != first


def test_a_new_successor_makes_a_new_fact_of_an_unchanged_job(slurm: FakeSlurm) -> None:
    slurm.say([line("1")], [detail(1)])
    assert slurm.sweep()["1"].successors == ()
    waiting = detail(2, "PENDING", dependency="afterok:1(unfulfilled)")
    slurm.say([line("1"), line("2", "PENDING")], [waiting])
    second = slurm.sweep()
    assert second["1"].successors == ("2",)
    slurm.say([line("1"), line("2", "FAILED")], [detail(2, "FAILED")])
    assert slurm.sweep()["1"] is second["1"]
