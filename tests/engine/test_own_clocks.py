"""One clock for each file: whose times may be compared, and when there is none."""

from __future__ import annotations

import pytest

from relight.diagnosis.courses import Stretch
from relight.engine.own_clocks import by_own_clock, own_time
from relight.model.instants import Instant, from_iso
from relight.model.progress import Progress
from relight.model.reports import FileReport, Shown

STEP_AT = from_iso("2026-03-01T10:00:00Z")
LATER = from_iso("2026-03-01T12:00:00Z")


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("2026-03-01T10:00:00Z step 7", STEP_AT),
        ("2026-03-01 10:00:00,000 - INFO - 2031-01-01 00:00:00 step 7", STEP_AT),
        ('{"log": "step 7", "time": "2026-03-01T10:00:00Z"}', STEP_AT),
        ("2026-03-01T10:00:00Z *** JOB 7 ON n1 CANCELLED AT 2026-03-01T17:00:00 ***", STEP_AT),
        ("*** JOB 7 ON n1 CANCELLED AT 2026-03-01T17:00:00 ***", None),
        ("step 7", None),
        ("", None),
    ],
)
def test_a_lines_own_time_stands_in_front_of_it(line: str, at: Instant | None) -> None:
    told = own_time(line)
    assert (told[0] if told is not None else None) == at


def report(*lines: str, last_at: Instant | None = LATER) -> FileReport:
    tail = tuple(Shown(file="a", line=n + 1, text=text) for n, text in enumerate(lines))
    return FileReport(file="a", tail=tail, last_at=last_at)


def stretch(step_at: Instant | None = STEP_AT) -> Stretch:
    return Stretch(file="a", run=0, progress=Progress(last_step=7), step_at=step_at, last_at=LATER)


@pytest.mark.parametrize(
    ("file", "last_at"),
    [
        (report("2026-03-01T10:00:00Z step 7", "2026-03-01T12:00:00Z beat"), LATER),
        (report("2026-03-01T10:00:00Z step 7", "2026-03-01 18:00:00 beat"), STEP_AT),
        (report("2026-03-01T10:00:00Z step 7", "no time at all"), STEP_AT),
        (report(*["2026-03-01T10:00:00Z step 7"] * 3), None),
        (
            report(
                "2026-03-01T10:00:00Z step 7", "2026-03-01T12:00:00Z a", "2026-03-01T09:00:00Z b"
            ),
            None,
        ),
        (report("step 7", "2026-03-01T12:00:00Z beat"), None),
        (report("its line is gone"), LATER),
        (report("its line is gone", last_at=None), None),
    ],
    ids=[
        "the last time of the same dress",
        "not that of another clock",
        "lines without a time tell none",
        "a clock that stands still is none",
        "a clock that runs back is none",
        "a step without a time was not told when it was read",
        "a progress line that was not kept leaves the file's own last time",
        "a file without times has none",
    ],
)
def test_a_file_is_heard_until_the_last_time_of_its_own_clock(
    file: FileReport, last_at: Instant | None
) -> None:
    timed = by_own_clock(stretch(), file)
    assert timed.last_at == last_at
    assert (timed.step_at is None) is (last_at is None)


def test_a_step_that_was_told_after_the_file_ended_was_told_by_no_clock_of_it() -> None:
    read_at = from_iso("2027-01-01T00:00:00Z")
    assert by_own_clock(stretch(read_at), report("its line is gone")).step_at is None
