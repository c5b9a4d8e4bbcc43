from __future__ import annotations

import bz2
import gzip
import lzma
import os
import struct
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path

import msgspec
import pytest

from relight.model.evidence import Evidence, Window
from relight.model.findings import Provenance
from relight.model.instants import Instant, from_iso, in_seconds, later, seconds, to_iso
from relight.model.jobs import Allocation, AttemptKey
from relight.perception.ears import Lexicon
from relight.rules.loading import load
from relight.sources.kernel_logs import KernelLogs
from relight.sources.kernel_logs.reading import is_timeless
from relight.sources.kernel_logs.zones import local_zone

LEXICON = Lexicon(load())
END = from_iso("2026-03-30T06:30:00Z")
WINDOW = Window(
    attempt=AttemptKey.parse("main:7-0"),
    allocation=Allocation(nodes=("gpu-7", "gpu-8")),
    since=later(END, seconds(-600)),
    until=later(END, seconds(300)),
)
ALONE = msgspec.structs.replace(WINDOW, allocation=Allocation(nodes=("gpu-7",)))
OFF_THE_BUS = "NVRM: Xid (PCI:0000:b3:00): 79, pid=812, GPU has fallen off the bus."
QUIET = "usb 1-1: new high-speed USB device"


def line(ago: float, text: str, host: str = "gpu-7") -> str:
    """Return a line that was written so many seconds before the attempt's end."""
    return f"{to_iso(later(END, seconds(-ago)))} {host} kernel: {text}\n"


def write(path: Path, text: str | bytes, ago: float = 0) -> Path:
    """Write a file as a relay leaves it: changed when its last line was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    at = in_seconds(later(END, seconds(-ago)))
    os.utime(path, (at, at))
    return path


def look(folder: Path, window: Window = ALONE, name: str = "%N.log") -> Evidence:
    return KernelLogs([f"{folder}/{name}"], LEXICON, lambda: END, UTC).look(window)


def rules(evidence: Evidence) -> list[str]:
    return [one.rule for one in evidence.findings]


def test_the_kernels_word_about_a_node_of_the_attempt_is_found(tmp_path: Path) -> None:
    write(tmp_path / "gpu-7.log", line(9_000, QUIET) + line(30, OFF_THE_BUS) * 12 + line(5, QUIET))
    write(tmp_path / "gpu-8.log", line(20, QUIET, "gpu-8"))
    evidence = look(tmp_path, WINDOW)
    (finding,) = evidence.findings
    assert (finding.rule, finding.nodes, finding.count) == ("gpu-fallen-off-bus", ("gpu-7",), 12)
    assert finding.provenance is Provenance.KERNEL
    assert finding.attempt == WINDOW.attempt
    assert (evidence.unseen, evidence.blind) == ("", ())


def test_the_same_look_twice_makes_the_same_findings(tmp_path: Path) -> None:
    path = write(tmp_path / "gpu-7.log", line(9_000, QUIET) + line(30, OFF_THE_BUS))
    before = look(tmp_path).findings
    path.rename(tmp_path / "gpu-7.log.1")
    write(path, line(2, QUIET))
    after = look(tmp_path).findings
    assert [one.id for one in before] == [one.id for one in after] != []


@pytest.mark.parametrize(
    ("node", "name"),
    [
        ("gpu-7.hpc.example", "gpu-7.hpc.example.log"),
        ("gpu-7.hpc.example", "gpu-7.log"),
        ("gpu-7", "gpu-7.log"),
    ],
)
def test_the_file_bears_the_nodes_full_name_or_its_short_one(
    tmp_path: Path, node: str, name: str
) -> None:
    write(tmp_path / name, line(9_000, QUIET) + line(30, OFF_THE_BUS))
    window = msgspec.structs.replace(ALONE, allocation=Allocation(nodes=(node,)))
    (finding,) = look(tmp_path, window).findings
    assert finding.nodes == (node,)


@pytest.mark.parametrize(
    ("pack", "name"),
    [
        (bytes, "gpu-7.log.1"),
        (gzip.compress, "gpu-7.log.1.gz"),
        (lzma.compress, "gpu-7.log.1.xz"),
        (bz2.compress, "gpu-7.log-20260330.bz2"),
        (gzip.compress, "gpu-7.log-20260330-1774850000.gz"),
        (bytes, "gpu-7.log-20260330"),
    ],
)
def test_what_was_rotated_away_within_the_window_is_read_too(
    tmp_path: Path, pack: Callable[[bytes], bytes], name: str
) -> None:
    write(tmp_path / "gpu-7.log", line(20, QUIET))
    write(tmp_path / "gpu-7.log-20260101", line(30, "EDAC MC3: 1 UE memory read error"))
    write(tmp_path / name, pack((line(9_000, QUIET) + line(30, OFF_THE_BUS)).encode()))
    assert rules(look(tmp_path)) == ["gpu-fallen-off-bus"]


def test_an_older_file_is_left_alone_when_the_present_one_reaches_back(tmp_path: Path) -> None:
    write(tmp_path / "gpu-7.log", line(9_000, QUIET) + line(20, QUIET))
    write(tmp_path / "gpu-7.log.1", line(30, OFF_THE_BUS))
    assert rules(look(tmp_path)) == []


def test_a_file_that_is_missing_leaves_its_node_unseen_and_is_said(tmp_path: Path) -> None:
    write(tmp_path / "gpu-7.log", line(9_000, QUIET) + line(30, OFF_THE_BUS))
    evidence = look(tmp_path, WINDOW)
    assert rules(evidence) == ["gpu-fallen-off-bus"]
    assert evidence.unseen == ""
    (blind,) = evidence.blind
    assert blind.startswith("The kernel log of gpu-8 could not be read: ")
    assert "no such file" in blind


def test_nothing_was_seen_when_no_file_could_be_read(tmp_path: Path) -> None:
    evidence = look(tmp_path, WINDOW)
    assert (evidence.findings, evidence.blind) == ((), ())
    assert "The kernel logs of 2 nodes could not be read: gpu-7: " in evidence.unseen
    assert f"; gpu-8: {tmp_path}/gpu-8.log cannot be opened" in evidence.unseen
    many = msgspec.structs.replace(
        WINDOW, allocation=Allocation(nodes=tuple(f"gpu-{number}" for number in range(7)))
    )
    assert "of 7 nodes could not be read: gpu-0: " in look(tmp_path, many).unseen
    assert look(tmp_path, many).unseen.endswith("; and 4 more.")


def test_an_empty_file_was_read_and_is_the_log_of_a_quiet_node(tmp_path: Path) -> None:
    write(tmp_path / "gpu-7.log", "")
    evidence = look(tmp_path, WINDOW)
    assert evidence.unseen == ""
    missing, quiet = evidence.blind
    assert missing.startswith("The kernel log of gpu-8 could not be read: ")
    assert quiet.startswith("Nothing was written to the kernel log of gpu-7 in the time looked at;")


def test_a_file_of_lines_without_a_time_is_told_from_an_empty_one(tmp_path: Path) -> None:
    timed = write(tmp_path / "a", f"[1.5] {QUIET}\n" + line(5, QUIET))
    timeless = write(tmp_path / "b", f"[1.5] {QUIET}\n[2.5] {OFF_THE_BUS}\n")
    empty = write(tmp_path / "c", "")
    answers = [is_timeless(str(path), END, UTC) for path in (timed, timeless, empty, tmp_path)]
    assert answers == [False, True, False, False]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [_pipe, Path.mkdir], ids=["a pipe", "a folder"])
def test_only_regular_files_are_read_and_nothing_blocks(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "gpu-7.log")
    began = time.monotonic()
    assert "no regular file" in look(tmp_path).unseen
    assert time.monotonic() - began < 1


@pytest.mark.parametrize("node", ["../gpu-7", "..", "", ".", "a/b", "a\0b"])
def test_a_nodes_name_leads_out_of_no_folder(tmp_path: Path, node: str) -> None:
    write(tmp_path / "gpu-7.log", line(30, OFF_THE_BUS))
    window = msgspec.structs.replace(ALONE, allocation=Allocation(nodes=(node,)))
    (tmp_path / "below").mkdir()
    evidence = look(tmp_path / "below", window, name="%N")
    assert evidence.findings == ()
    assert evidence.unseen


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"[  812.678901] {QUIET}\n[12345.678901] {OFF_THE_BUS}\n", "tell no time of day"),
        (line(30, OFF_THE_BUS, "gpu-9") + line(5, QUIET, "gpu-9"), "lines of other hosts"),
        (line(-9_000, OFF_THE_BUS), "do not fit the time"),
    ],
)
def test_lines_that_cannot_be_placed_blame_nobody_and_are_said(
    tmp_path: Path, text: str, said: str
) -> None:
    write(tmp_path / "gpu-7.log", text)
    evidence = look(tmp_path)
    assert evidence.findings == ()
    assert said in evidence.unseen


def test_lines_of_another_host_among_the_nodes_own_are_left_out_and_said(tmp_path: Path) -> None:
    text = line(9_000, QUIET) + line(30, OFF_THE_BUS, "gpu-9") + line(5, QUIET)
    write(tmp_path / "gpu-7.log", text)
    evidence = look(tmp_path)
    assert evidence.findings == ()
    assert any("lines of other hosts" in one for one in evidence.blind)


def test_a_log_in_which_nothing_was_written_is_not_taken_for_a_healthy_node(tmp_path: Path) -> None:
    write(tmp_path / "gpu-7.log", line(90_000, QUIET), ago=90_000)
    evidence = look(tmp_path)
    assert evidence.unseen == ""
    (blind,) = evidence.blind
    assert blind.startswith("Nothing was written to the kernel log of gpu-7")


SUMMER = timezone(timedelta(hours=2))


def _classic(zone: tzinfo) -> str:
    """Return lines without year and zone, as a relay in that zone writes them."""
    clock = "06:29:30" if zone is UTC else "08:29:30"
    old = f"Mar 29 06:00:00 gpu-7 kernel: {QUIET}\n"
    return old + f"Mar 30 {clock} gpu-7 kernel: [12345.678] {OFF_THE_BUS}\n"


@pytest.mark.parametrize("zone", [UTC, SUMMER])
def test_times_without_a_zone_are_read_in_the_relays(tmp_path: Path, zone: tzinfo) -> None:
    write(tmp_path / "gpu-7.log", _classic(zone), ago=30)
    (finding,) = KernelLogs([f"{tmp_path}/%N.log"], LEXICON, lambda: END, zone).look(ALONE).findings
    assert finding.at == later(END, seconds(-30))


@pytest.mark.parametrize(("written", "read"), [(UTC, SUMMER), (SUMMER, UTC)])
def test_times_of_another_zone_than_assumed_are_noticed_and_not_used(
    tmp_path: Path, written: tzinfo, read: tzinfo
) -> None:
    write(tmp_path / "gpu-7.log", _classic(written), ago=30)
    evidence = KernelLogs([f"{tmp_path}/%N.log"], LEXICON, lambda: END, read).look(ALONE)
    assert evidence.findings == ()
    assert "do not fit" in evidence.unseen


def test_only_the_end_of_a_huge_file_is_read_and_that_is_said(tmp_path: Path) -> None:
    flood = "".join(line(400 - number / 200, "eth0: dropped" * 20) for number in range(40_000))
    write(tmp_path / "gpu-7.log", line(500, OFF_THE_BUS) + flood + line(30, OFF_THE_BUS))
    began = time.monotonic()
    evidence = look(tmp_path)
    assert time.monotonic() - began < 5
    assert [one.at for one in evidence.findings] == [later(END, seconds(-30))]
    assert any("could not be read back" in one for one in evidence.blind)


def test_a_huge_file_costs_only_what_lies_in_the_window(tmp_path: Path) -> None:
    path = write(tmp_path / "gpu-7.log", b"")
    with path.open("wb") as file:
        file.truncate(3 * 1024**3)
        file.seek(0, os.SEEK_END)
        file.write(("\n" + line(9_000, QUIET) * 5_000 + line(30, OFF_THE_BUS)).encode())
    os.utime(path, (in_seconds(END), in_seconds(END)))
    began = time.monotonic()
    assert rules(look(tmp_path)) == ["gpu-fallen-off-bus"]
    assert time.monotonic() - began < 1


def test_a_last_line_that_is_still_being_written_is_left_for_the_next_look(tmp_path: Path) -> None:
    text = line(9_000, QUIET) + line(30, OFF_THE_BUS)
    path = write(tmp_path / "gpu-7.log", text.rstrip("\n"))
    assert rules(look(tmp_path)) == []
    write(path, text)
    assert rules(look(tmp_path)) == ["gpu-fallen-off-bus"]


@pytest.mark.parametrize(
    "data",
    [
        os.urandom(200_000),
        b"\0" * 500_000,
        b"\n" * 500_000,
        b"x" * 3_000_000,
        gzip.compress(os.urandom(100_000))[:50_000],
        b"\x1f\x8b\x08rubbish",
        b"\xff\xfe" + "NVRM: Xid".encode("utf-16-le"),
    ],
)
def test_rubbish_is_read_without_harm(tmp_path: Path, data: bytes) -> None:
    write(tmp_path / "gpu-7.log", data)
    write(tmp_path / "gpu-8.log", line(9_000, QUIET) + line(30, OFF_THE_BUS, "gpu-8"))
    (finding,) = look(tmp_path, WINDOW).findings
    assert finding.nodes == ("gpu-8",)


def test_a_flood_on_one_node_hides_no_other(tmp_path: Path) -> None:
    flood = "".join(
        line(500, f"NVRM: Xid (PCI:{number:04x}:b3:00): 79, pid=8, GPU has fallen off the bus.")
        for number in range(2_000)
    )
    write(tmp_path / "gpu-7.log", flood)
    write(tmp_path / "gpu-8.log", line(9_000, QUIET) + line(30, OFF_THE_BUS, "gpu-8"))
    evidence = look(tmp_path, WINDOW)
    named = [one.nodes for one in evidence.findings]
    assert ("gpu-8",) in named
    assert len(named) <= 64
    assert any("more trouble than is kept" in one for one in evidence.blind)


def test_a_thousand_nodes_are_looked_at_in_seconds(tmp_path: Path) -> None:
    nodes = tuple(f"gpu-{number:04d}" for number in range(1_000))
    for node in nodes:
        write(tmp_path / f"{node}.log", line(9_000, QUIET, node) + line(30, OFF_THE_BUS, node))
    window = msgspec.structs.replace(ALONE, allocation=Allocation(nodes=nodes))
    began = time.monotonic()
    evidence = look(tmp_path, window)
    assert time.monotonic() - began < 8
    assert len(evidence.findings) == 64
    assert evidence.blind == ("The kernel logs told 936 things more, left out here.",)


def test_of_too_much_the_possible_causes_are_kept_before_the_symptoms(tmp_path: Path) -> None:
    symptoms = "".join(
        line(500, f"NVRM: Xid (PCI:{number:04x}:b3:00): 43, pid=8, Ch 00000010")
        for number in range(200)
    )
    write(tmp_path / "gpu-7.log", line(9_000, QUIET) + symptoms + line(30, OFF_THE_BUS))
    found = rules(look(tmp_path))
    assert (len(found), found[-1]) == (64, "gpu-fallen-off-bus")


def test_no_allocation_is_no_answer(tmp_path: Path) -> None:
    window = msgspec.structs.replace(ALONE, allocation=Allocation())
    assert look(tmp_path, window).unseen


@pytest.mark.parametrize(
    ("name", "expected"),
    [(":UTC", "UTC"), ("No/Such", "UTC"), ("../x", "UTC"), ("x\0y", "UTC")],
)
def test_a_zone_that_nobody_knows_is_utc(tmp_path: Path, name: str, expected: str) -> None:
    assert str(local_zone({"TZ": name}, tmp_path / "localtime")) == expected


def test_the_zone_is_this_machines(tmp_path: Path) -> None:
    local = tmp_path / "localtime"
    local.write_bytes(_two_hours_east())
    zone = local_zone({}, local)
    assert zone.utcoffset(datetime(2026, 3, 30, tzinfo=UTC).replace(tzinfo=zone)) == timedelta(
        hours=2
    )


def _two_hours_east() -> bytes:
    """Return a zone as /etc/localtime holds it (RFC 8536): one kind of time, no change."""
    head = b"TZif2" + bytes(15)
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    data = struct.pack(">lbb", 7_200, 0, 0) + b"EET\0"
    return (head + counts + data) * 2 + b"\nEET-2\n"


def test_the_zone_is_utc_where_nothing_tells_it(tmp_path: Path) -> None:
    assert local_zone({}, tmp_path / "localtime") is UTC
    (tmp_path / "localtime").write_bytes(b"rubbish")
    assert local_zone({}, tmp_path / "localtime") is UTC


def test_the_clock_tells_when_a_finding_was_made(tmp_path: Path) -> None:
    write(tmp_path / "gpu-7.log", line(9_000, QUIET) + line(30, OFF_THE_BUS))
    now = Instant(END + 7)
    logs = KernelLogs([f"{tmp_path}/%N.log"], LEXICON, lambda: now, UTC)
    assert [one.seen_at for one in logs.look(ALONE).findings] == [now]
