"""Deaths as launchers print them, and where they put the ranks."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.diagnosis.deaths import deaths_in, pids_in
from relight.diagnosis.placing import Places, printed_allocation
from relight.model.findings import Evidence, Finding, Place, Role
from relight.model.instants import from_iso
from relight.model.jobs import Allocation
from relight.testing.stories import finding


def line(text: str, number: int, before: tuple[str, ...] = (), **fields: object) -> Finding:
    """Return a finding of a symptom with the line that it rests on, and those above it."""
    place = Place(file="job.out", offset=number * 100, line=number)
    made = finding("symptom", role=Role.SYMPTOM, offset=number)
    evidence = (*(Evidence(text=one) for one in before), Evidence(text=text, is_root=True))
    return msgspec.structs.replace(made, place=place, evidence=evidence, **fields)


BOX = (
    "  time      : 2026-03-01_10:00:01",
    "  host      : node-b.cluster",
    "  rank      : 11 (local_rank: 3)",
    "  exitcode  : -9 (pid: 4242)",
)


@pytest.mark.parametrize(
    "findings",
    [
        [line(BOX[3], 7, BOX[:3])],
        [line(BOX[2], 6, BOX[:2]), line(BOX[3], 7)],
        [line(BOX[1], 5, BOX[:1]), line(BOX[2], 6), line(BOX[3], 7)],
        [line(BOX[3], 7, ("unrelated", *BOX[:3]))],
        [line(f"3: {BOX[3]}", 7, tuple(f"3: {one}" for one in BOX[:3]))],
    ],
)
def test_the_lines_of_one_box_belong_together(findings: list[Finding]) -> None:
    (death,) = deaths_in(findings)
    assert (death.hosts, death.rank, death.code, death.pid) == (("node-b.cluster",), 11, -9, 4242)
    assert death.at == from_iso("2026-03-01T10:00:01")
    assert not death.was_told_to_stop


def test_two_boxes_one_after_the_other_are_two_deaths() -> None:
    second = tuple(one.replace("11", "12").replace("-9", "-15") for one in BOX)
    deaths = deaths_in([line(BOX[3], 7, BOX[:3]), line(second[3], 14, second[:3])])
    assert [one.rank for one in deaths] == [11, 12]
    assert [one.was_told_to_stop for one in deaths] == [False, True]


def test_a_traceback_above_a_line_is_not_counted_back_as_lines_of_a_box() -> None:
    assert deaths_in([line("ValueError: boom", 9, ("  rank      : 3 (local_rank: 3)",))]) == ()


@pytest.mark.parametrize(
    ("text", "hosts", "tasks", "code", "stopped"),
    [
        ("srun: error: n7: task 3: Exited with exit code 1", ("n7",), (3,), 1, False),
        ("srun: error: n[7-8]: tasks 0-2,9: Killed", ("n7", "n8"), (0, 1, 2, 9), None, False),
        ("srun: error: n7: tasks 0-1: Terminated", ("n7",), (0, 1), None, True),
        ("srun: error: n7: task 0: Exited with exit code 143", ("n7",), (0,), 143, True),
        ("pdsh@login: n7: ssh exited with exit code 255", ("n7",), (), 255, False),
    ],
)
def test_one_line_of_srun_or_pdsh_tells_of_all_that_ended_alike(
    text: str, hosts: tuple[str, ...], tasks: tuple[int, ...], code: int | None, *, stopped: bool
) -> None:
    (death,) = deaths_in([line(text, 3)])
    assert (death.hosts, death.tasks, death.code) == (hosts, tasks, code)
    assert death.was_told_to_stop is stopped


@given(st.text(max_size=300), st.text(max_size=100))
def test_no_line_is_too_strange(text: str, above: str) -> None:
    for one in (text, f"srun: error: {text}: task {above}: Killed", f"rank : {text} {above}"):
        deaths_in([line(one, 1), line(f"exitcode  : {above}", 2, (f"host  : {text}", above))])


def test_the_kernels_victim_is_the_rank_whose_process_it_was() -> None:
    killed = line("kernel: Out of memory: Killed process 4242 (python)", 2)
    box = line(BOX[3], 7, BOX[:3])
    assert pids_in(killed) == (4242,)
    places = Places([killed, box], printed_allocation([killed, box]), is_whole=False)
    assert places.ranks_of(killed) == (11,)
    assert places.of(killed) == ("node-b.cluster",)


def test_a_task_is_placed_where_srun_says_and_a_rank_where_its_box_stands() -> None:
    box = line(BOX[3], 7, BOX[:3])
    srun = line("srun: error: node-c: task 4: Exited with exit code 1", 12)
    allocation = printed_allocation([box, srun])
    places = Places([box, srun], allocation, is_whole=False)
    assert allocation.nodes == ("node-b.cluster", "node-c")
    assert places.of(line("boom", 1, ranks=(11,))) == ("node-b.cluster",)
    assert places.of(line("boom", 1, tasks=(4,))) == ("node-c",)
    assert places.of(line("boom", 1, ranks=(4,))) == ()


def test_a_prefix_puts_a_rank_on_its_host_but_a_line_of_srun_does_not() -> None:
    prefixed = line("node-a: [rank3]: boom", 1, nodes=("node-a",), ranks=(3,))
    srun = line("srun: error: node-b: task 5: Killed", 2, nodes=("node-b",), ranks=(5,))
    places = Places([prefixed, srun], printed_allocation([prefixed, srun]), is_whole=False)
    assert places.of(line("bang", 3, ranks=(3,))) == ("node-a",)
    assert places.of(line("bang", 3, ranks=(5,))) == ()


def test_of_an_unknown_allocation_the_only_printed_node_is_not_the_only_one() -> None:
    told = line("boom", 1, nodes=("node-a",))
    other = line("bang", 2)
    assert Places([told], Allocation(nodes=("node-a",)), is_whole=False).of(other) == ()
    assert Places([told], Allocation(nodes=("node-a",))).of(other) == ("node-a",)


def test_what_came_after_a_run_was_stopped_is_no_death_but_shows_which_nodes_were_well() -> None:
    ended = line("srun: error: node-b: task 5: Terminated", 2)
    died = line("srun: error: node-a: task 1: Exited with exit code 1", 1)
    places = Places(
        [died, ended],
        printed_allocation([died, ended]),
        is_whole=False,
        aftermath=frozenset({ended.id}),
    )
    assert [one.hosts for one in places.deaths] == [("node-a",)]
    assert places.stopped_nodes() == {"node-b"}


def test_localhost_is_no_node() -> None:
    assert printed_allocation([line("x", 1, nodes=("localhost", "n1"))]).nodes == ("n1",)
