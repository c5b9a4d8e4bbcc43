from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.instants import (
    Instant,
    between,
    from_iso,
    from_unix,
    in_seconds,
    later,
    parse_span,
    seconds,
    show_span,
    to_iso,
)

INSTANTS = st.integers(0, 4_102_444_800_000_000).map(Instant)


@given(INSTANTS)
def test_iso_text_is_exact_to_the_microsecond_both_ways(at: Instant) -> None:
    assert from_iso(to_iso(at)) == at


@given(INSTANTS, INSTANTS)
def test_iso_texts_sort_as_instants_do(one: Instant, other: Instant) -> None:
    assert (to_iso(one) < to_iso(other)) is (one < other)


@pytest.mark.parametrize(
    ("text", "unix"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2025-10-09T08:53:20Z", 1_760_000_000.0),
        ("2025-10-09T08:53:20", 1_760_000_000.0),
        ("2025-10-09T10:53:20+02:00", 1_760_000_000.0),
        ("2025-10-09T08:53:20.5Z", 1_760_000_000.5),
        ("2025-10-09 08:53:20.000001", 1_760_000_000.000001),
    ],
)
def test_a_text_without_zone_is_utc_and_a_zone_is_obeyed(text: str, unix: float) -> None:
    assert from_iso(text) == from_unix(unix)


@pytest.mark.parametrize(
    "text", ["", "Unknown", "None", "2025-13-01T00:00:00", "N/A", "1760000000"]
)
def test_what_is_not_iso_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        from_iso(text)


def test_an_instant_is_what_the_standard_library_says() -> None:
    assert to_iso(from_unix(1_760_000_000.25)) == (
        datetime.fromtimestamp(1_760_000_000.25, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("90s", 90.0),
        ("1.5h", 5_400.0),
        ("1h 30m", 5_400.0),
        ("1h30m", 5_400.0),
        ("10 ms", 0.01),
        ("5us", 0.000005),
        ("2d", 172_800.0),
        ("0s", 0.0),
        (" 1s ", 1.0),
    ],
)
def test_a_span_is_a_number_and_a_unit(text: str, count: float) -> None:
    assert parse_span(text) == seconds(count)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "90",
        "s",
        "-5s",
        "1h30",
        "1,5h",
        "5 sec",
        "5S",
        "1.2345678s",
        "12345678901s",
        "1e3s",
        "inf",
    ],
)
def test_what_is_no_span_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match='such as "60s"'):
        parse_span(text)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 ms"),
        (0.85, "850 ms"),
        (0.9999, "999 ms"),
        (1, "1.0 s"),
        (12.4, "12.4 s"),
        (99.9, "99.9 s"),
        (100, "1m 40s"),
        (185, "3m 05s"),
        (5_999, "99m 59s"),
        (6_000, "1h 40m"),
        (8_040, "2h 14m"),
        (360_000, "100h 00m"),
        (-185, "-3m 05s"),
    ],
)
def test_a_span_is_shown_in_the_unit_that_a_person_would_use(count: float, shown: str) -> None:
    assert show_span(seconds(count)) == shown


@given(INSTANTS, INSTANTS)
def test_later_undoes_between(start: Instant, end: Instant) -> None:
    assert later(start, between(start, end)) == end
    assert between(end, start) == -between(start, end)


def test_seconds_are_rounded_to_a_microsecond_and_come_back() -> None:
    assert seconds(0.0000014) == 1
    assert in_seconds(seconds(2.5)) == 2.5
