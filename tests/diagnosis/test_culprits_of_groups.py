"""Who is late in one of several process groups, from the lines of the watchdogs alone."""

from __future__ import annotations

import msgspec
import pytest

from relight.diagnosis.culprits import lagging_ranks
from relight.model.findings import Evidence, Finding, Kind
from relight.testing.stories import finding


def line(rank: int, group: str, numbers: tuple[int, int], place: int = 0) -> Finding:
    """Say how far a rank has come in a group, by its own number of it and by the common name."""
    enqueued, completed = numbers
    return said(
        f"[rank{rank}]:[E301 ProcessGroupNCCL.cpp:2271] [PG ID {rank + 3} PG GUID {group} "
        f"Rank {place}] failure detected by watchdog at work sequence id: 9 PG status: last "
        f"enqueued work: {enqueued}, last completed work: {completed}",
        place,
    )


def said(text: str, *ranks: int) -> Finding:
    made = finding("watchdog", kind=Kind.HANG, ranks=ranks)
    return msgspec.structs.replace(made, evidence=(Evidence(text=text, is_root=True),))


def signal(rank: int, enqueued: int, completed: int) -> Finding:
    """Say what a rank prints that rank 0 told to dump: its own numbers, and rank 0's name."""
    return said(
        f"[rank{rank}]:[E ProcessGroupNCCL.cpp:1683] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
        "Received a dump signal due to a collective timeout from rank 0 and we will try our best "
        f"to dump the debug info. Last enqueued NCCL work: {enqueued}, last completed NCCL work: "
        f"{completed}.",
        0,
    )


@pytest.mark.parametrize(
    ("findings", "late"),
    [
        # Each rank has its own number for the group; the common name joins them.
        ([line(8, "119", (9, 8)), line(9, "119", (9, 8), 1), line(10, "119", (8, 8), 2)], (10,)),
        # The same name on other ranks is another group only where the name says so.
        ([line(8, "119", (9, 8)), line(9, "120", (5, 5))], ()),
        # Rank 1 is late in the rows because it waits for rank 3 in its column.
        (
            [
                *(line(0, "rows", (9, 8)), line(2, "rows", (9, 8), 2), line(1, "rows", (8, 8), 1)),
                *(line(1, "columns", (7, 6)), line(3, "columns", (6, 6), 1)),
            ],
            (3,),
        ),
        # Both wait for each other: nobody is singled out.
        (
            [
                *(line(0, "rows", (9, 8)), line(1, "rows", (8, 8), 1)),
                *(line(1, "columns", (7, 6)), line(0, "columns", (6, 6), 1)),
            ],
            (),
        ),
        # All wait for work 6; how much more each has enqueued says nothing.
        ([line(0, "0", (9, 5)), line(1, "0", (9, 5), 1), line(2, "0", (7, 5), 2)], ()),
        # All have enqueued work 9, two saw its end: the third is stuck inside.
        ([line(0, "0", (9, 9)), line(1, "0", (9, 9), 1), line(2, "0", (9, 8), 2)], (2,)),
        # All ended it: nobody waits.
        ([line(0, "0", (9, 9)), line(1, "0", (9, 9), 1), line(2, "0", (8, 8), 2)], ()),
        # Who was told to dump prints its own numbers and another's name.
        ([signal(1, 27, 26), signal(2, 27, 26), signal(3, 26, 26)], (3,)),
        # A rank's latest word counts.
        ([line(0, "0", (9, 8)), line(1, "0", (5, 5), 1), line(1, "0", (9, 8), 1)], ()),
    ],
)
def test_who_is_late_in_the_group_that_stood_first_is_the_culprit(
    findings: list[Finding], late: tuple[int, ...]
) -> None:
    assert lagging_ranks(findings) == late
    assert lagging_ranks(findings[::-1]) == late


def test_a_status_that_tells_what_was_started_too_is_read() -> None:
    def told(rank: int, enqueued: int) -> Finding:
        return said(
            f"[rank{rank}]: PG ID 3: last enqueued work: {enqueued}, last started work: -1, "
            "last completed work: 8",
            rank,
        )

    assert lagging_ranks([told(0, 9), told(1, 9), told(2, 8)]) == (2,)
