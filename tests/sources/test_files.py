from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.model.jobs import JobFact, OutputPaths
from relight.model.signals import FileUnseen, Mark, Reading
from relight.sources.files import LEAST_SHARE, AttemptLogs
from relight.sources.output_patterns import LogFile
from relight.sources.owner_readers import OwnerReaders

MIB = 1 << 20


@pytest.fixture
def logs(readers: OwnerReaders) -> AttemptLogs:
    return AttemptLogs(readers, os.geteuid())


def read(
    logs: AttemptLogs, path: Path, mark: Mark | None = None, budget: int = 64 * MIB
) -> Reading:
    marks = {str(path): mark} if mark else {}
    readings, unseen = logs.read([LogFile(path=str(path))], marks, budget)
    assert unseen == []
    return readings[0]


def why(logs: AttemptLogs, path: Path | str) -> str:
    readings, unseen = logs.read([LogFile(path=str(path))], {}, MIB)
    assert readings == []
    assert [entry.file for entry in unseen] == [str(path)]
    return unseen[0].why


def test_a_file_that_appears_late_is_unseen_until_then(logs: AttemptLogs, folder: Path) -> None:
    path = folder / "late.out"
    assert why(logs, path) == "not there yet"
    path.write_bytes(b"here\n")
    reading = read(logs, path)
    assert (reading.data, reading.offset, reading.restarted) == (b"here\n", 0, False)


def test_growth_is_read_from_where_reading_stopped(logs: AttemptLogs, folder: Path) -> None:
    path = folder / "a.out"
    path.write_bytes(b"one\n")
    first = read(logs, path)
    assert read(logs, path, first.mark).data == b""
    with path.open("ab") as file:
        file.write(b"two\n")
    second = read(logs, path, first.mark)
    assert (second.data, second.offset, second.restarted) == (b"two\n", 4, False)


@pytest.mark.parametrize("now", [b"", b"new\n", b"n" * 1000, b"n" * 5000])
def test_a_truncated_file_begins_anew_however_far_it_has_grown(
    logs: AttemptLogs, folder: Path, now: bytes
) -> None:
    path = folder / "a.out"
    path.write_bytes(b"o" * 1000)
    mark = read(logs, path).mark
    path.write_bytes(now)
    reading = read(logs, path, mark)
    assert (reading.data, reading.offset, reading.restarted) == (now, 0, True)


def test_a_file_renamed_away_and_written_anew_begins_anew(logs: AttemptLogs, folder: Path) -> None:
    path = folder / "a.out"
    path.write_bytes(b"same\n")
    mark = read(logs, path).mark
    path.rename(folder / "a.out.1")
    path.write_bytes(b"same\nmore\n")
    reading = read(logs, path, mark)
    assert (reading.data, reading.restarted) == (b"same\nmore\n", True)


def test_a_folder_mounted_anew_is_no_new_file(logs: AttemptLogs, folder: Path) -> None:
    path = folder / "a.out"
    path.write_bytes(b"same\n")
    mark = read(logs, path).mark
    elsewhere = Mark(offset=5, device=mark.device + 1, inode=mark.inode, anchor=mark.anchor)
    assert not read(logs, path, elsewhere).restarted


@pytest.mark.parametrize("budget", [3 * MIB, 64 << 10])
def test_a_flood_does_not_starve_the_others(logs: AttemptLogs, folder: Path, budget: int) -> None:
    flood, quiet = folder / "flood.out", folder / "quiet.out"
    flood.write_bytes(b"x" * (8 * MIB))
    quiet.write_bytes(b"root cause\n" * 100)
    files = [LogFile(path=str(flood)), LogFile(path=str(quiet))]
    readings, unseen = logs.read(files, {}, budget)
    assert unseen == []
    assert sum(len(reading.data) for reading in readings) == budget
    assert [r.data for r in readings if r.file == str(quiet)] == [b"root cause\n" * 100]
    assert not any(r.at_end for r in readings if r.file == str(flood))


def test_every_file_gets_its_least_share_of_a_small_budget(logs: AttemptLogs, folder: Path) -> None:
    files = []
    for number in range(5):
        path = folder / f"{number}.out"
        path.write_bytes(b"y" * 10_000)
        files.append(LogFile(path=str(path), rank=number))
    readings, _ = logs.read(files, {}, 100)
    assert [(r.rank, len(r.data)) for r in readings] == [(n, LEAST_SHARE) for n in range(5)]


def test_a_sparse_file_of_ten_gigabytes_costs_its_budget_only(
    logs: AttemptLogs, readers: OwnerReaders, folder: Path
) -> None:
    path = folder / "sparse.out"
    with path.open("wb") as file:
        file.truncate(10 << 30)
    readings, _ = logs.read([LogFile(path=str(path))], {}, 4 * MIB)
    assert sum(len(reading.data) for reading in readings) == 4 * MIB
    (pid,) = readers.pids.values()
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 64_000


def test_a_write_far_beyond_a_truncation_is_noticed(logs: AttemptLogs, folder: Path) -> None:
    path = folder / "a.out"
    with path.open("wb", buffering=0) as file:
        file.write(b"o" * 1000)
        mark = read(logs, path).mark
        os.truncate(path, 0)
        file.write(b"after\n")
    reading = read(logs, path, mark)
    assert reading.restarted
    assert reading.data == b"\0" * 1000 + b"after\n"


def test_names_that_cannot_be_written_down_are_unseen(logs: AttemptLogs) -> None:
    odd = os.fsdecode(b"/x/\xff.out")
    _, unseen = logs.read([LogFile(path=odd)], {}, MIB)
    assert unseen == [FileUnseen(file="/x/\\udcff.out", why="its name is not UTF-8")]


@pytest.mark.parametrize("name", ["relative", "/nul\0nul", "/" + "x" * 5000])
def test_names_that_are_no_paths_are_unseen(logs: AttemptLogs, name: str) -> None:
    assert "absolute path" in why(logs, name)


def test_further_files_are_found_and_labelled(logs: AttemptLogs, folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    for name in ("deep/er/r-0.log", "deep/r-1.log", "r-2.log", "r-x.log", ".r-3.log"):
        (folder / name).write_text("x")
    (folder / os.fsdecode(b"r-\xff.log")).write_text("x")
    (folder / "loop").symlink_to(folder)
    output = OutputPaths(stdout="r-2.log", work_dir=str(folder))
    fact = JobFact(cluster="main", scheduler_id="1", output=output)
    found = logs.files(fact, (), "**/r-%t.log")
    assert [(Path(file.path).name, file.rank) for file in found.files] == [
        ("r-2.log", None),
        ("r-0.log", 0),
        ("r-1.log", 1),
    ]
    assert [entry.why for entry in found.unseen] == ["names that are not UTF-8 are left out"]


@pytest.mark.parametrize("pattern", ["/etc/pass*", "/", "/" + "a/" * 200, "/et*/passwd"])
def test_a_look_outside_the_roots_finds_nothing(logs: AttemptLogs, pattern: str) -> None:
    found = logs.files(JobFact(cluster="main", scheduler_id="1", is_batch=False), (), pattern)
    assert found.files == ()
    assert len(found.unseen) == 1


def test_no_more_files_than_the_bound_are_read(logs: AttemptLogs, folder: Path) -> None:
    for number in range(2_010):
        (folder / f"{number}.log").touch()
    fact = JobFact(cluster="main", scheduler_id="1", output=OutputPaths(work_dir=str(folder)))
    found = logs.files(fact, (), "*.log")
    assert len(found.files) == 2_000
    assert found.unseen


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(min_size=1, max_size=700),
            st.sampled_from([1, 300, 5_000, 100_000]),
        ),
        max_size=12,
    )
)
def test_any_sequence_of_appends_and_reads_reassembles_to_the_bytes(
    steps: list[bytes | int],
) -> None:
    with tempfile.TemporaryDirectory() as name, OwnerReaders((name,), is_root=False) as pool:
        logs, path = AttemptLogs(pool, None), Path(name).resolve() / "a.out"
        written, seen, mark = b"", b"", Mark()
        path.touch()
        for step in [*steps, MIB]:
            if isinstance(step, bytes):
                written += step * 20
                with path.open("ab") as file:
                    file.write(step * 20)
                continue
            for reading in logs.read([LogFile(path=str(path))], {str(path): mark}, step)[0]:
                assert (reading.offset, reading.restarted) == (len(seen), False)
                seen, mark = seen + reading.data, reading.mark
        assert seen == written
