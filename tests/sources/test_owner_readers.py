"""The rights, the life and the death of reader processes, with real users and real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from relight.model.seen import Seen, Unseen
from relight.model.signals import Mark
from relight.sources.files import AttemptLogs
from relight.sources.output_patterns import LogFile
from relight.sources.owner_readers import Chunk, OwnerReaders, ReaderLimits, Stuck

NOBODY, GAMES = 65_534, 5
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")
SECRET = b"the secret of games"


def ask(readers: OwnerReaders, path: Path | str, uid: int | None = None) -> bytes | str:
    answer = readers.read(os.geteuid() if uid is None else uid, str(path), Mark(), 1 << 20)
    match answer:
        case Seen(value=Chunk(data=data)):
            return data
        case Unseen(why=why):
            return why


@pytest.fixture
def secret(folder: Path) -> Path:
    """Give a file of games that nobody else may read."""
    if os.geteuid() != 0:
        pytest.skip("only root can become other users")
    path = folder / "secret"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    os.chown(path, GAMES, GAMES)
    return path


def test_only_the_owner_reads_a_private_file(readers: OwnerReaders, secret: Path) -> None:
    assert ask(readers, secret, GAMES) == SECRET
    assert ask(readers, secret, NOBODY) == f"uid {NOBODY}, whose job names it, may not read it"


@pytest.mark.parametrize("kind", ["symlink", "hardlink", "linked folder"])
def test_no_link_leads_to_another_users_text(
    readers: OwnerReaders, secret: Path, folder: Path, kind: str
) -> None:
    own = folder / "own"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    path = own / "job.out"
    if kind == "symlink":
        path.symlink_to(secret)
    elif kind == "hardlink":
        path.hardlink_to(secret)
    else:
        secret.rename(folder / "job.out")
        (own / "sub").symlink_to(folder)
        path = own / "sub" / "job.out"
    readings, unseen = AttemptLogs(readers, NOBODY).read([LogFile(path=str(path))], {}, 1 << 20)
    assert readings == []
    assert "may not read it" in unseen[0].why


@needs_root
def test_a_reader_has_the_owners_rights_and_nothing_else(
    readers: OwnerReaders, folder: Path
) -> None:
    (folder / "a").write_bytes(b"x")
    assert ask(readers, folder / "a", GAMES) == b"x"
    status = dict(
        line.split(":\t", 1)
        for line in Path(f"/proc/{readers.pids[GAMES]}/status").read_text().splitlines()
        if ":\t" in line
    )
    groups = set(map(str, os.getgrouplist("games", 60)))
    assert status["Uid"].split() == [str(GAMES)] * 4
    assert set(status["Gid"].split()) | set(status["Groups"].split()) == groups
    assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert Path(f"/proc/{readers.pids[GAMES]}/environ").read_bytes() == b""


@needs_root
def test_a_reader_has_none_of_relights_own_groups(folder: Path) -> None:
    path = folder / "a"
    path.write_bytes(SECRET)
    path.chmod(0o640)
    os.chown(path, 0, 4_242)
    program = (
        "import os, sys; from relight.sources.owner_readers import OwnerReaders\n"
        "from relight.model.signals import Mark\n"
        "os.setgroups([4242])\n"
        "with OwnerReaders((sys.argv[1],)) as pool:\n"
        "    print(pool.read(5, sys.argv[1] + '/a', Mark(), 99))"
    )
    command = [sys.executable, "-c", program, str(folder)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "may not read it" in said


@needs_root
def test_an_owner_without_an_account_still_reads_with_own_rights(
    readers: OwnerReaders, folder: Path
) -> None:
    path = folder / "a"
    path.write_bytes(b"x")
    path.chmod(0o400)
    os.chown(path, 54_321, 0)
    assert ask(readers, path, 54_321) == b"x"
    path.chmod(0o040)
    assert "may not read it" in str(ask(readers, path, 54_321))


def test_root_reads_for_root_alone(readers: OwnerReaders, secret: Path) -> None:
    assert ask(readers, secret, 0) == SECRET
    assert readers.read(None, str(secret), Mark(), 9) == Unseen(
        "the scheduler did not say whose job it is, and root reads for nobody"
    )


def test_without_root_one_reader_serves_all_with_own_rights(folder: Path) -> None:
    (folder / "a").write_bytes(b"x")
    with OwnerReaders((str(folder),), is_root=False) as pool:
        assert [ask(pool, folder / "a", uid) for uid in (1, 2)] == [b"x", b"x"]
        assert list(pool.pids) == [None]


def test_what_is_no_regular_file_is_refused_at_once(readers: OwnerReaders, folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "zero").symlink_to("/dev/zero")
    (folder / "tty").symlink_to("/dev/tty")
    started = time.monotonic()
    assert ask(readers, folder / "fifo") == "it is a named pipe, not a regular file"
    assert ask(readers, folder / "zero") == "it is a device, not a regular file"
    assert ask(readers, "/dev/zero") == "it is a device, not a regular file"
    assert ask(readers, folder) == "it is a folder, not a regular file"
    assert "could not be opened" in str(ask(readers, folder / "tty"))
    assert time.monotonic() - started < 1.5


@pytest.mark.parametrize("way", ["plain", "dots", "link", "sibling"])
def test_a_file_outside_the_roots_is_refused_whatever_its_name(folder: Path, way: str) -> None:
    root, outside = folder / "root", folder / "root-but-not"
    root.mkdir()
    outside.mkdir()
    (outside / "a").write_bytes(b"x")
    (root / "link").symlink_to(outside / "a")
    path = {
        "plain": "/etc/passwd",
        "dots": f"{root}/../root-but-not/a",
        "link": f"{root}/link",
        "sibling": f"{outside}/a",
    }[way]
    with OwnerReaders((str(root),)) as pool:
        assert "outside the folders" in str(ask(pool, path))


def test_the_whole_system_may_be_the_root(folder: Path) -> None:
    (folder / "a").write_bytes(b"x")
    with OwnerReaders(("/",)) as pool:
        assert ask(pool, folder / "a") == b"x"
        assert isinstance(pool.find(os.geteuid(), f"{folder}/*"), Seen)


def test_a_root_may_itself_be_a_link(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "a").write_bytes(b"x")
    (folder / "root").symlink_to(folder / "real")
    with OwnerReaders((str(folder / "root"),)) as pool:
        assert ask(pool, folder / "root" / "a") == b"x"


def test_a_killed_reader_is_replaced(readers: OwnerReaders, folder: Path) -> None:
    (folder / "a").write_bytes(b"x")
    assert ask(readers, folder / "a") == b"x"
    (before,) = readers.pids.values()
    os.kill(before, signal.SIGKILL)
    assert ask(readers, folder / "a") == b"x"
    assert list(readers.pids.values()) != [before]


def test_a_stopped_reader_costs_its_patience_and_is_replaced(folder: Path) -> None:
    (folder / "a").write_bytes(b"x")
    (folder / "b").write_bytes(b"x")
    files = [LogFile(path=str(folder / name)) for name in ("a", "b")]
    with OwnerReaders((str(folder),), ReaderLimits(patience=0.6)) as pool:
        logs = AttemptLogs(pool, os.geteuid())
        assert len(logs.read(files, {}, 99)[0]) == 2
        (pid,) = pool.pids.values()
        os.kill(pid, signal.SIGSTOP)
        started = time.monotonic()
        readings, unseen = logs.read(files, {}, 99)
        assert time.monotonic() - started < 2
        assert readings == []
        assert {entry.why for entry in unseen} == {"nothing answered within 0.6 s"}
        assert len(logs.read(files, {}, 99)[0]) == 2
        assert not Path(f"/proc/{pid}").exists()


def test_a_reader_that_never_gets_ready_is_given_up(folder: Path) -> None:
    with OwnerReaders((str(folder),), ReaderLimits(patience=0.001)) as pool:
        assert pool.read(os.geteuid(), str(folder), Mark(), 9) == Stuck(
            "nothing answered within 0.001 s"
        )


@needs_root
def test_no_more_readers_live_than_allowed_and_the_longest_unused_goes(folder: Path) -> None:
    (folder / "a").write_bytes(b"x")
    with OwnerReaders((str(folder),), ReaderLimits(most_alive=2)) as pool:
        for uid in (GAMES, NOBODY, 54_321):
            assert ask(pool, folder / "a", uid) == b"x"
        assert set(pool.pids) == {NOBODY, 54_321}


def test_an_idle_reader_ends_and_a_closed_pool_answers_nothing(folder: Path) -> None:
    now = [0.0]
    (folder / "a").write_bytes(b"x")
    with OwnerReaders((str(folder),), ReaderLimits(idle=10), monotonic=lambda: now[0]) as pool:
        assert ask(pool, folder / "a") == b"x"
        (pid,) = pool.pids.values()
        now[0] = 11.0
        pool.end_idle()
        assert pool.pids == {}
        assert not Path(f"/proc/{pid}").exists()
    assert ask(pool, folder / "a") == "relight is ending"


def test_a_reader_dies_with_relight_even_when_its_input_stays_open(folder: Path) -> None:
    (folder / "a").write_bytes(b"x")
    program = (
        "import os, signal, sys; from relight.sources.owner_readers import OwnerReaders\n"
        "from relight.model.signals import Mark\n"
        "pool = OwnerReaders((sys.argv[1],))\n"
        "pool.read(os.geteuid(), sys.argv[1] + '/a', Mark(), 9); (pid,) = pool.pids.values()\n"
        "os.kill(pid, signal.SIGSTOP); print(pid, flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    stat = Path(f"/proc/{pid}/stat")
    deadline = time.monotonic() + 5
    while stat.exists() and ") Z " not in stat.read_text():
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            pytest.fail("the reader outlived relight")
        time.sleep(0.01)


def test_many_threads_may_read_at_once_and_outlive_each_other(
    readers: OwnerReaders, folder: Path
) -> None:
    wanted = {folder / f"{number}.out": bytes([number]) * 50_000 for number in range(20)}
    for path, data in wanted.items():
        path.write_bytes(data)
    for _ in range(2):
        with ThreadPoolExecutor(8) as threads:
            answers = threads.map(lambda path: ask(readers, path), wanted)
        assert list(answers) == list(wanted.values())
        assert len(readers.pids) == 1
