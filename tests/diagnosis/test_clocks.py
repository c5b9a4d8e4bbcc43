"""First in time, where some lines print a time, some none, and some a wrong one."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.diagnosis.clocks import in_time_order
from relight.model.findings import Finding, Place
from relight.model.instants import Instant, later, seconds
from relight.testing.stories import START, finding

READ = later(START, seconds(86_400))


def line(file: str, number: int, at: int | None, seen: Instant = READ) -> Finding:
    made = finding(f"{file}{number}", offset=number, seen_at=seen)
    place = Place(file=file, offset=number, line=number)
    told = None if at is None else later(START, seconds(at))
    return msgspec.structs.replace(made, id=f"{file}{number}", place=place, at=told)


@pytest.mark.parametrize(
    ("lines", "order"),
    [
        ([("a", 1, 50), ("b", 1, 10)], "b1 a1"),
        ([("a", 1, None), ("b", 1, None)], "a1 b1"),
        ([("a", 1, 50), ("a", 2, None), ("b", 1, 60)], "a1 a2 b1"),
        ([("a", 1, None), ("a", 2, 50), ("b", 1, 40)], "b1 a1 a2"),
        ([("a", 1, 50), ("a", 2, 49), ("b", 1, 10)], "b1 a1 a2"),
        ([("a", 1, 5000), ("a", 2, 10), ("b", 1, 4000)], "b1 a1 a2"),
        ([("a", 1, 200_000), ("b", 1, 190_000)], "b1 a1"),
        ([("a", 1, None), ("b", 1, 10)], "b1 a1"),
    ],
    ids=[
        "the earlier line of another file is first",
        "without times the place decides",
        "a line without a time has that of the line before",
        "the first lines have that of the line after",
        "writers of one file may be a little apart",
        "a file whose times run back far has no clock and comes last",
        "a zone that is ahead of ours keeps its order",
        "a file without times comes last",
    ],
)
def test_files_that_were_read_at_once_are_ordered_by_their_own_clocks(
    lines: list[tuple[str, int, int | None]], order: str
) -> None:
    found = [line(*one) for one in lines]
    assert " ".join(one.id for one in in_time_order(found)) == order
    assert " ".join(one.id for one in in_time_order(found[::-1])) == order


def test_lines_that_were_read_one_by_one_are_ordered_by_ours_where_one_tells_no_time() -> None:
    first = line("a", 1, 500, seen=later(START, seconds(1_000)))
    second = line("b", 1, 100, seen=later(START, seconds(1_001)))
    assert in_time_order([first, second]) == [second, first]
    untimed = line("c", 1, None, seen=later(START, seconds(1_002)))
    assert in_time_order([untimed, first, second]) == [first, second, untimed]


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.integers(0, 9), st.one_of(st.none(), st.integers(0, 9999))
        ),
        max_size=8,
        unique_by=lambda one: one[:2],
    )
)
def test_within_one_file_the_place_always_decides(
    lines: list[tuple[str, int, int | None]],
) -> None:
    ordered = in_time_order([line(*one) for one in lines])
    for file in "ab":
        places = [one.place.line for one in ordered if one.place and one.place.file == file]
        assert places == sorted(places)
