from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from relight.model.advice import Mode
from relight.model.findings import Evidence
from relight.model.instants import Instant, seconds
from relight.model.jobs import JobFact, JobState, NodeFact
from relight.testing.demo.acts import is_over, problems
from relight.testing.demo.faults import FAULTS, USUAL, FaultName
from relight.testing.demo.screens import ScreenTeller, picture
from relight.testing.demo.sentences import evidence_around_root
from relight.testing.demo.watching import Act, Point, Snapshot, last_step

ACT = Act(number=1, mode=Mode.MONITOR, fault=FAULTS[FaultName.ECC], pace=USUAL)
NODES = tuple(NodeFact(cluster="demo", name=f"node-0{number}") for number in range(1, 5))
FACT = JobFact(
    cluster="demo",
    scheduler_id="1",
    name="training-1",
    state=JobState.RUNNING,
    nodes=("node-01", "node-02", "node-03"),
)


def snapshot(*, fact: JobFact | None = FACT) -> Snapshot:
    points = tuple(
        Point(at=Instant(seconds(place / 10)), step=place, is_running=place < 30)
        for place in range(50)
    )
    at = Instant(seconds(5))
    return Snapshot(act=ACT, began=Instant(0), at=at, nodes=NODES, fact=fact, points=points)


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (100, 30), (200, 50)])
def test_no_line_is_wider_than_the_terminal(size: tuple[int, int]) -> None:
    width, height = size
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(picture(snapshot(), console, is_last=True))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert any("MONITOR" in line for line in lines)


def test_the_terminal_is_given_back_when_an_act_breaks_off() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24)
    teller = ScreenTeller(console)
    teller.begin(ACT)
    teller.show(snapshot())
    teller.close()
    teller.close()
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().rstrip().endswith("\x1b[?25h")


def test_a_job_that_nobody_saw_is_no_success_and_no_end() -> None:
    unseen = snapshot(fact=None)
    assert problems(unseen)
    assert not is_over(unseen)


def test_a_restart_in_monitor_mode_is_a_failure_of_the_demo() -> None:
    from relight.engine.cases import Case  # noqa: PLC0415 - only here
    from relight.model.jobs import JobKey  # noqa: PLC0415 - only here

    fact = msgspec.structs.replace(FACT, restart_count=1)
    case = Case(key=JobKey(cluster="demo", scheduler_id="1"))
    changed = msgspec.structs.replace(snapshot(fact=fact), case=case)
    assert any("restarted 1 times" in problem for problem in problems(changed))


@pytest.mark.parametrize(
    ("root", "most", "kept"),
    [(0, 2, "ab"), (3, 2, "cd"), (5, 3, "def"), (None, 2, "ef"), (2, 10, "abcdef")],
)
def test_the_root_line_is_always_among_the_lines_shown(
    root: int | None, most: int, kept: str
) -> None:
    lines = tuple(
        Evidence(text=letter, is_root=place == root) for place, letter in enumerate("abcdef")
    )
    assert "".join(one.text for one in evidence_around_root(lines, most)) == kept


def test_the_step_is_the_last_one_in_the_log(tmp_path_factory: pytest.TempPathFactory) -> None:
    log = tmp_path_factory.mktemp("log") / "job.out"
    assert last_step(log) is None
    log.write_bytes(b"\xff" * 20_000 + b"\n2: [x] iteration  7/ 60 |\n2: [x] iteration  8/ 60 |\n")
    assert last_step(log) == 8
