from __future__ import annotations

import gzip
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from relight.model.findings import Domain
from relight.model.instants import EPOCH
from relight.model.jobs import Allocation
from relight.model.reports import FileReport, LogFile, Shown
from relight.perception.ears import Ears
from relight.sources.archives import reading
from relight.sources.archives.diagnosing import Announced, Diagnoses, diagnose_logs
from relight.sources.archives.jobs import Wanted
from relight.sources.archives.reading import Listener, bounded, read_logs

LISTENER = Listener(directories=(), shelf=None, now=EPOCH)
EARS = LISTENER.ears()
LOG = "".join(f"step {number}/100 loss 2.5\n" for number in range(1, 50))
OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB. GPU 3 has\n"
)


def wanted(folder: Path, name: str, text: str = LOG, rank: int | None = None) -> Wanted:
    path = folder / name
    path.write_text(text)
    return Wanted(path=str(path), log=LogFile(file=name, rank=rank))


def diagnosed(*words: str | Path, nodes: tuple[str, ...] = ()) -> Diagnoses:
    def prepare(_: Announced) -> tuple[Listener, Ears]:
        return LISTENER, EARS

    names = [str(word) for word in words]
    return diagnose_logs(names, Allocation(nodes=nodes), prepare, lambda _: None)


def test_several_processes_read_what_one_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [wanted(tmp_path, f"{rank}.log", LOG * (rank + 1), rank) for rank in range(3)]
    files.append(Wanted(path=str(tmp_path / "none"), log=LogFile(file="none")))
    counted: list[int] = []
    alone = read_logs(files, LISTENER, EARS, counted.append)
    assert sum(counted) == sum(report.size for report in alone)
    monkeypatch.setattr(reading, "MUCH", 1)
    assert read_logs(files, LISTENER, EARS, counted.append) == alone
    assert [report.rank for report in alone] == [0, 1, 2, None]
    assert alone[3].trouble == "no such file or directory"
    assert multiprocessing.active_children() == []


def test_a_reader_that_dies_costs_its_own_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MUCH", 1)
    monkeypatch.setattr(reading, "MOST_PROCESSES", 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    files = [wanted(tmp_path, f"{rank}.log") for rank in range(4)]

    def kill() -> None:
        while not (children := multiprocessing.active_children()):
            time.sleep(0.01)
        os.kill(children[0].pid or 0, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    reports = read_logs(files, LISTENER, EARS, lambda _: None)
    killer.join()
    lost = [report.trouble for report in reports if report.trouble]
    assert lost == ["the process that read it ended (signal 9)"]
    assert [report.file for report in reports] == [f"{rank}.log" for rank in range(4)]


def test_a_report_is_cut_to_the_room_there_is() -> None:
    tail = tuple(Shown(file="a", line=number, text="x" * 1_000) for number in range(200))
    report = bounded(FileReport(file="a", tail=tail), 40_000)
    assert 10 <= len(report.tail) <= 40
    assert report.tail[-1] == tail[-1]
    small = FileReport(file="a", tail=tail[:3])
    assert bounded(small, 40_000) is small


def test_the_files_of_each_job_are_diagnosed_apart(tmp_path: Path) -> None:
    wanted(tmp_path, "slurm-7_1.out", LOG + OUT_OF_MEMORY)
    wanted(tmp_path, "slurm-7_2.out")
    found = diagnosed(tmp_path)
    assert [one.job for one in found.jobs] == ["7_1", "7_2"]
    assert found.jobs[0].report.family == "device_oom"
    assert found.jobs[1].report.family != "device_oom"
    assert (found.jobs[1].files, found.jobs[1].lines, found.jobs[1].size) == (1, 49, len(LOG))


def test_what_cannot_be_read_is_no_health(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    for words in (["none"], [tmp_path / "empty.log"], [tmp_path], []):
        found = diagnosed(*words)
        [one] = found.jobs
        assert one.report.domain is Domain.UNKNOWN
        assert one.report.attempts == 0
        assert found.is_partial is bool(words)
        assert found.is_misnamed is (words in ([tmp_path], []))


def test_an_empty_file_beside_others_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "slurm-1.err").touch()
    wanted(tmp_path, "slurm-1.out")
    found = diagnosed(tmp_path / "slurm-1.err", tmp_path / "slurm-1.out")
    assert not found.is_partial
    assert found.jobs[0].files == 1


def test_the_root_has_the_lines_that_follow_it(tmp_path: Path) -> None:
    text = (
        "before\n"
        + OUT_OF_MEMORY
        + "after one\n\x1b[31mafter two\x1b[0m\nafter three\n"
        + "more\n" * 500
    )
    (tmp_path / "a.log").write_text(text)
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(text.encode()))
    root = diagnosed(tmp_path / "a.log").jobs[0].report.root
    assert root is not None
    assert root.line == 2
    assert root.after[:3] == ("after one", "after two", "after three")
    assert diagnosed(tmp_path / "a.log.gz").jobs[0].report.root is not None


def test_earlier_attempts_of_a_launcher_are_counted_and_left_out(tmp_path: Path) -> None:
    for attempt in (0, 1, 2):
        folder = tmp_path / f"attempt_{attempt}" / "0"
        folder.mkdir(parents=True)
        wanted(folder, "stdout.log")
    [one] = diagnosed(tmp_path).jobs
    assert (one.report.attempts, one.left_out, one.files) == (3, 2, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"x" * 20_000_000,
        b"\x1b[" * 2_000_000,
        b"\r" * 2_000_000,
        b"\xff\xfe\xfd" * 100_000 + b"\n",
        b"Traceback (most recent call last):\n" * 50_000,
    ],
    ids=["one line", "escapes", "returns", "no UTF-8", "tracebacks"],
)
def test_no_log_is_too_strange(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"text first\n" + data)
    assert diagnosed(tmp_path / "a.log").jobs
