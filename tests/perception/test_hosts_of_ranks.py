from __future__ import annotations

import pytest

from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.reports import LogFile
from relight.perception.ears import Ears, Lexicon
from relight.perception.ranks import MOST_HEARD, MOST_RANKS
from relight.perception.reporting import report_of

EARS = Ears(Lexicon([]), AttemptKey(job=JobKey(cluster="m", scheduler_id="7"), attempt=0))
START = "[after megatron is initialized] datetime: 2026-01-31 10:00:00"
STEP = " iteration 7/ 900 | consumed samples: 1 | elapsed time per iteration (ms): 1.0 |"


def member(host: str, rank: int, size: int, comm: str = "") -> str:
    named = f" commId {comm}" if comm else ""
    return (
        f"{host}:811:811 [0] NCCL INFO comm 0x55d0 rank {rank} nranks {size} cudaDev 0 nvmlDev 0"
        f" busId 1000{named} - Init START"
    )


def hosts(*lines: str, size: int = 1 << 20) -> dict[int, str]:
    data = ("\n".join(lines) + "\n").encode()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    return report_of(LogFile(file="a.log"), chunks, EARS, Instant(0)).hosts


CASES: list[tuple[str, list[str], dict[int, str]]] = [
    ("each rank once", [member("a1", 0, 2), member("b1", 1, 2)], {0: "a1", 1: "b1"}),
    (
        "a group of ranks counts them anew",
        [member("a1", 0, 4), member("b1", 3, 4), member("b1", 0, 2)],
        {0: "a1", 3: "b1"},
    ),
    (
        "the world comes after a group",
        [member("b1", 0, 2), member("a1", 0, 4), member("b1", 3, 4)],
        {0: "a1", 3: "b1"},
    ),
    (
        "two groups of one size, told apart by name",
        [member("a1", 0, 2, "0x1"), member("b1", 0, 2, "0x2"), member("c1", 1, 2, "0x1")],
        {0: "a1", 1: "c1"},
    ),
    (
        "two claims to one rank and no name to tell them apart",
        [member("a1", 0, 2), member("b1", 0, 2), member("c1", 1, 2)],
        {1: "c1"},
    ),
    (
        "the next run runs elsewhere",
        [START, member("a1", 0, 2), STEP, START, member("b1", 0, 2)],
        {0: "b1"},
    ),
    ("the next run does not say where", [START, member("a1", 0, 2), STEP, START, STEP], {}),
    ("pdsh names the host", ["node-1: " + member("vm-3-7", 0, 2)], {0: "node-1"}),
    ("words alone", ["it has 3 nranks 4", "comm rank 3 nranks 4"], {}),
]


@pytest.mark.parametrize(
    ("lines", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_start_ups_tell_where_ranks_run(lines: list[str], expected: dict[int, str]) -> None:
    assert hosts(*lines) == expected
    assert hosts(*lines, size=37) == expected


def test_no_more_is_kept_than_fits() -> None:
    lines = [member("a1", rank, 1_000_000) for rank in range(MOST_RANKS + 5)]
    assert len(hosts(*lines)) == MOST_RANKS


def test_no_more_is_looked_at_than_is_worth_while() -> None:
    lines = [member("a1", 0, 2)] * MOST_HEARD + [member("a1", 1, 2)]
    assert hosts(*lines) == {0: "a1"}
