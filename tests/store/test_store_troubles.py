from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from relight.store import Change, Store, StoreBroken, StoreBusy, Tail, stores
from relight.store import connections as store_connections
from relight.store.connections import connect, file_of, writing
from relight.store.schemas import prepare

ChangeOf = Callable[..., Change]
GONE = "removed or replaced while relight runs: stop it, restore the file, start again"


def _delete(path: Path) -> None:
    path.unlink()


def _replace(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


def _move_the_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


@pytest.mark.parametrize("lose", [_delete, _replace, _move_the_folder])
def test_a_file_that_was_removed_or_replaced_is_neither_written_nor_read_nor_made_anew(
    tmp_path: Path, change_of: ChangeOf, lose: Callable[[Path], None]
) -> None:
    path = tmp_path / "state" / "relight.db"
    path.parent.mkdir()
    with Store.open(str(path)) as store:
        store.commit(change_of(1))
        lose(path)
        was_there = path.exists()
        for number in range(2, 5):
            with pytest.raises(StoreBroken, match=GONE):
                store.commit(change_of(number))
        with pytest.raises(StoreBroken, match=GONE):
            store.try_out()
        with pytest.raises(StoreBroken, match=GONE):
            store.newest_case("main", "1")
        assert path.exists() == was_there


def test_a_file_that_vanishes_while_a_change_is_written_does_not_get_it(
    tmp_path: Path, url: str
) -> None:
    engine = connect(url, read_only=False)
    prepare(engine)
    file_of(engine).remember()

    def write_and_lose() -> None:
        with writing(engine) as connection:
            connection.exec_driver_sql("CREATE TABLE late (x INTEGER)")
            (tmp_path / "relight.db").rename(tmp_path / "kept.db")

    with pytest.raises(StoreBroken, match=GONE):
        write_and_lose()
    engine.dispose()
    with closing(sqlite3.connect(tmp_path / "kept.db")) as kept:
        assert not kept.execute("SELECT 1 FROM sqlite_master WHERE name = 'late'").fetchall()


def test_a_file_that_was_put_back_is_used_again(
    tmp_path: Path, store: Store, change_of: ChangeOf
) -> None:
    away = (tmp_path / "relight.db").rename(tmp_path / "away")
    with pytest.raises(StoreBroken):
        store.commit(change_of(1))
    away.rename(tmp_path / "relight.db")
    store.commit(change_of(1))
    store.try_out()


def test_trying_out_writes_nothing_and_says_who_holds_the_database(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_connections, "BUSY_SECONDS", 0.05)
    with (
        Store.open(url) as store,
        closing(sqlite3.connect(tmp_path / "relight.db", isolation_level=None)) as other,
    ):
        before = (tmp_path / "relight.db-wal").read_bytes()
        store.try_out()
        assert (tmp_path / "relight.db-wal").read_bytes() == before
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match=r"another program holds the database .*relight\.db"):
            store.try_out()
        other.execute("ROLLBACK")
        store.try_out()


def test_a_disk_that_is_all_but_full_is_told_before_it_is_full(
    store: Store, change_of: ChangeOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "LEAST_FREE", 1 << 62)
    with pytest.raises(StoreBroken, match=r"all but full .* make room"):
        store.try_out()
    store.commit(change_of(1))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 2 MiB; skip where that is not allowed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted: {made.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", disk], check=True)


def _fill(filler: Path) -> None:
    with filler.open("wb", buffering=0) as opened, suppress(OSError):
        while True:
            opened.write(b"x" * 4_096)


def test_a_full_disk_is_said_in_plain_words_and_writing_goes_on_when_there_is_room(
    small_disk: Path, change_of: ChangeOf
) -> None:
    with Store.open(str(small_disk / "relight.db")) as store:
        store.commit(change_of(1))
        filler = small_disk / "filler"
        _fill(filler)
        large = Tail(attempt=change_of(2).advice[0].attempt, file="out", text="x" * 500_000)
        with pytest.raises(StoreBroken, match=r"the disk that holds .* is full .* make room"):
            store.commit(Change(tails=(large,)))
        with pytest.raises(StoreBroken, match="all but full"):
            store.try_out()
        assert store.counts()["tails"] == 1
        filler.unlink()
        store.commit(Change(tails=(large,)))
        assert store.counts()["tails"] == 2


LIMITED = """
import resource, sys
from relight.model.jobs import AttemptKey
from relight.store import Change, Store, StoreBroken, Tail

tail = Tail(attempt=AttemptKey.parse("main:1-0"), file="out", text="x" * 2_000_000)
with Store.open(sys.argv[1]) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    try:
        store.commit(Change(tails=(tail,)))
    except StoreBroken as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.commit(Change(tails=(tail,)))
"""


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY,
    reason="the size of files is limited already",
)
def test_a_limit_on_the_size_of_files_is_survived_and_said(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, url], capture_output=True, text=True, check=True
    )
    assert "the disk refused to read or write" in done.stdout
    assert "limit on the size of files" in done.stdout
    with Store.open(url) as store:
        assert store.counts()["tails"] == 1
