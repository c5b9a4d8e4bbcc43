from __future__ import annotations

from datetime import UTC, timedelta, timezone, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.instants import Instant, from_iso
from relight.perception.kernel.heads import head_of

NOW = from_iso("2026-03-30T12:00:00Z")
BERLIN = timezone(timedelta(hours=2))
AT = "2026-03-30T06:24:00Z"
XID = "NVRM: Xid (PCI:0000:b3:00): 79, pid=812"


@pytest.mark.parametrize(
    ("line", "zone", "at", "host", "tag"),
    [
        (f"2026-03-30T08:24:00+02:00 gpu-7 kernel: {XID}", UTC, AT, "gpu-7", "kernel"),
        (f"2026-03-30T08:24:00+0200 gpu-7 kernel: {XID}", UTC, AT, "gpu-7", "kernel"),
        (f"2026-03-30T08:24:00 gpu-7 kernel: {XID}", BERLIN, AT, "gpu-7", "kernel"),
        (f"2026-03-30T06:24:00Z gpu-7.hpc kernel: [1.5] {XID}", BERLIN, AT, "gpu-7.hpc", "kernel"),
        (f"<3>1 2026-03-30T06:24:00Z gpu-7 kernel - - - {XID}", BERLIN, AT, "gpu-7", "kernel"),
        (f"<11>1 2026-03-30T06:24:00Z gpu-7 app 7 ID1 [a b=c] {XID}", UTC, AT, "gpu-7", "app"),
        (f"Mar 30 06:24:00 gpu-7 kernel: [12345.678] {XID}", UTC, AT, "gpu-7", "kernel"),
        (f"<3>Mar 30 08:24:00 gpu-7 kernel: {XID}", BERLIN, AT, "gpu-7", "kernel"),
        (f"Mar 30 06:24:00 10.1.2.3 kernel: {XID}", UTC, AT, "10.1.2.3", "kernel"),
        ("Mar 30 06:24:00 gpu-7 slurmd[812]: up", UTC, AT, "gpu-7", "slurmd"),
        (f"[Mon Mar 30 08:24:00 2026] {XID}", BERLIN, AT, "", ""),
        (f"2026-03-30T08:24:00,000000+02:00 {XID}", UTC, AT, "", ""),
        (f"2026-03-30 06:24:00 {XID}", UTC, AT, "", ""),
        ("Apr  1 06:24:00 gpu-7 kernel: x", UTC, "2025-04-01T06:24:00Z", "gpu-7", "kernel"),
        ("Dec 31 23:59:59 gpu-7 kernel: x", UTC, "2025-12-31T23:59:59Z", "gpu-7", "kernel"),
        ("Mar 31 06:24:00 gpu-7 kernel: x", UTC, "2026-03-31T06:24:00Z", "gpu-7", "kernel"),
        ("2016-12-31T23:59:60Z n kernel: x", UTC, "2017-01-01T00:00:00Z", "n", "kernel"),
    ],
)
def test_time_host_and_program_are_read_from_every_form(
    line: str, zone: tzinfo, at: str, host: str, tag: str
) -> None:
    head = head_of(line, NOW, zone)
    assert head.at == from_iso(at)
    assert (head.host, head.tag) == (host, tag)


def test_a_date_without_a_year_just_after_new_year_is_last_years() -> None:
    head = head_of("Dec 31 23:59:59 gpu-7 kernel: x", from_iso("2026-01-01T00:01:00Z"), UTC)
    assert head.at == from_iso("2025-12-31T23:59:59Z")


def test_fractions_are_kept_to_the_microsecond() -> None:
    head = head_of("2026-03-30T06:24:00.1234567Z gpu-7 kernel: x", NOW, UTC)
    assert head.at == from_iso("2026-03-30T06:24:00.123456Z")


@pytest.mark.parametrize(
    "line",
    [
        f"[12345.678901] {XID}",
        f"[    1.500000] {XID}",
        f"gpu-7 kernel: [12345.678901] {XID}",
        XID,
        "",
        f"2026-13-45T99:99:99Z gpu-7 kernel: {XID}",
        f"Feb 30 06:24:00 gpu-7 kernel: {XID}",
        f"Foo 30 06:24:00 gpu-7 kernel: {XID}",
        f"at noon 2026-03-30T06:24:00Z {XID}",
    ],
)
def test_a_line_without_a_time_of_day_has_none(line: str) -> None:
    assert head_of(line, NOW, UTC).at is None


@pytest.mark.parametrize(("line", "zoned"), [("Z ", True), ("+05:45 ", True), (" ", False)])
def test_a_head_says_whether_its_zone_was_told(line: str, *, zoned: bool) -> None:
    head = head_of(f"2026-03-30T06:24:00{line}gpu-7 kernel: x", NOW, timezone(timedelta(hours=3)))
    assert head.is_zoned is zoned


@given(st.text(alphabet="0123456789-:TZ+[]<>. JanFebMr\u0660gpu kernl", max_size=80))
def test_any_text_has_a_head_or_none(line: str) -> None:
    head = head_of(line, NOW, BERLIN)
    assert head.message <= len(line)
    assert head.at is None or isinstance(head.at, int)


@given(st.integers(min_value=0, max_value=2**41))
def test_any_present_reads_a_date_without_year(now: int) -> None:
    head_of("Feb 29 06:24:00 gpu-7 kernel: x", Instant(now * 1000), BERLIN)
