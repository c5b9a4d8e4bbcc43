"""Who is behind a hang, where the lines of the victims tell."""

from __future__ import annotations

import msgspec
import pytest

from relight.diagnosis.culprits import common_end, lagging_ranks, missing_ranks, silent_rank
from relight.model.findings import Evidence, Finding, Kind
from relight.testing.stories import finding


def told(text: str, *ranks: int, **fields: object) -> Finding:
    made = finding("watchdog", kind=Kind.HANG, ranks=ranks)
    return msgspec.structs.replace(made, evidence=(Evidence(text=text, is_root=True),), **fields)


def status(rank: int, enqueued: int, group: str = "ID 0 PG GUID 0(default_pg)") -> Finding:
    return told(
        f"[rank{rank}]:[E301 ProcessGroupNCCL.cpp:2271] [PG {group} Rank {rank}] failure detected "
        f"by watchdog at work sequence id: 9 PG status: last enqueued work: {enqueued}, "
        "last completed work: 8",
        rank,
    )


def older(rank: int, enqueued: int) -> Finding:
    return told(
        f"[PG 0 Rank {rank}] Timeout at NCCL work: 7, last enqueued NCCL work: {enqueued}, "
        "last completed NCCL work: 5.",
        rank,
    )


@pytest.mark.parametrize(
    ("findings", "late"),
    [
        ([status(0, 9), status(1, 9), status(2, 8)], (2,)),
        ([status(0, 9), status(1, 8)], (1,)),
        ([status(0, 9), status(1, 9)], ()),
        ([status(0, 9), status(1, 8), status(2, 8)], ()),
        ([status(0, 9, "ID 1 PG GUID 1"), status(1, 5, "ID 2 PG GUID 2")], ()),
        ([status(0, 9)], ()),
        ([older(1, 7), older(3, 5)], (3,)),
        ([told("no number here", 1), told("last enqueued work: x, last completed work: y", 2)], ()),
        ([], ()),
    ],
)
def test_within_one_group_the_ranks_that_enqueued_less_came_late(
    findings: list[Finding], late: tuple[int, ...]
) -> None:
    assert lagging_ranks(findings) == late


@pytest.mark.parametrize(
    ("spoke", "silent"),
    [
        ((0, 1, 2, 4), 3),
        ((1, 2, 3), 0),
        ((0, 1, 2, 3), None),
        ((0, 1, 4), None),
        ((0, 2), None),
        ((), None),
    ],
)
def test_the_one_rank_that_says_nothing_is_the_one_they_wait_for(
    spoke: tuple[int, ...], silent: int | None
) -> None:
    assert silent_rank([told("Watchdog", rank) for rank in spoke]) == silent


def test_ranks_that_are_not_ready_are_missing() -> None:
    stalled = told("Stalled ops: allreduce.w [ready ranks: 5, 1, 4, 7, 2, 3]")
    assert missing_ranks([told("nothing"), stalled]) == (0, 6)
    assert missing_ranks([told("nothing")]) == ()


def pair(node: str, *peers: str) -> Finding:
    return told("Got completion from peer", nodes=(node,), peers=peers)


@pytest.mark.parametrize(
    ("findings", "suspect"),
    [
        ([pair("a", "10.0.0.7<42>"), pair("b", "10.0.0.7<47>"), pair("c", "10.0.0.7")], "10.0.0.7"),
        ([pair("a", "b"), pair("a", "c"), pair("a", "d")], "a"),
        ([pair("a", "b:4242"), pair("c", "b:4711")], "b"),
        ([pair("a", "b")], None),
        ([pair("a", "b"), pair("b", "a")], None),
        ([pair("a", "b"), pair("c", "d")], None),
        ([pair("a", "b"), pair("a", "b"), pair("a", "b")], None),
        ([pair("a", "c"), pair("b", "c"), pair("a", "d"), pair("b", "d")], None),
        ([pair("a")], None),
        ([], None),
    ],
)
def test_the_end_that_most_failing_pairs_share_is_the_suspect(
    findings: list[Finding], suspect: str | None
) -> None:
    assert common_end(findings) == suspect
