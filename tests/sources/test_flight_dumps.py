"""Dumps are found, read with the rights of their owner, and told from those of other attempts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from relight.model.evidence import Evidence, Window
from relight.model.instants import Instant
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.sources.flight_dumps import FlightDumps, nodes_by_rank
from relight.sources.flight_files import gather_own
from relight.sources.owner_readers import OwnerReaders
from relight.testing.flight_dumps import Recorders, as_json

NOBODY, GAMES = 65_534, 5
START = 1_790_000_000_000_000
NODES = Allocation(nodes=("node-0", "node-1"), tasks_per_node=4, ranks_are_tasks=True)
LOADER = (("next_batch", "/srv/app/data.py", 12),)
Look = Callable[..., Evidence]


def window_of(path: object) -> Window:
    return Window(
        attempt=AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=1),
        allocation=NODES,
        since=Instant(START),
        until=Instant(START + 900_000_000),
        started_at=Instant(START),
        uid=os.geteuid(),
        flight_recorder=str(path),
    )


@pytest.fixture
def look(readers: OwnerReaders, folder: Path) -> Look:
    """Look as the daemon does, for a job of the user who runs the tests."""
    source = FlightDumps(readers=readers, now=lambda: Instant(START + 900_000_000))

    def ask(path: object = None, **fields: object) -> Evidence:
        return source.look(msgspec.structs.replace(window_of(path or folder), **fields))

    return ask


def hung(*absent: int, start: int = START * 1000) -> Recorders:
    recorders = Recorders(8, start=start)
    recorders.call()
    recorders.call(ranks=[rank for rank in range(8) if rank not in absent], state="started")
    return recorders


def write(
    recorders: Recorders, folder: Path, name: str = "nccl_trace_rank_{}", *ranks: int
) -> None:
    for rank in ranks or range(recorders.world):
        (folder / name.format(rank)).write_bytes(recorders.pickled(rank))


@pytest.mark.parametrize("path", ["", "/", "/nccl_trace_rank_", "/nccl_*_[0-9]*"])
def test_dumps_are_found_by_folder_prefix_or_glob(look: Look, folder: Path, path: str) -> None:
    write(hung(5), folder)
    evidence = look(f"{folder}{path}")
    assert [finding.ranks for finding in evidence.findings] == [(5,)]
    assert evidence.findings[0].nodes == ("node-1",)
    assert (evidence.unseen, evidence.blind) == ("", ())


def test_the_jobs_id_stands_for_itself_in_a_path(look: Look, folder: Path) -> None:
    (folder / "7").mkdir()
    write(hung(5), folder / "7")
    assert len(look(f"{folder}/%j/nccl_trace_rank_").findings) == 1


def test_other_files_in_the_folder_are_passed_over(look: Look, folder: Path) -> None:
    write(hung(5), folder)
    (folder / "rank_3.log").write_text("step 1")
    (folder / "core.1234").write_bytes(b"\x7fELF" * 100)
    (folder / "notes").write_text("{}")
    os.mkfifo(folder / "nccl_trace_rank_9")
    (folder / "nccl_trace_rank_10").mkdir()
    evidence = look()
    assert [finding.ranks for finding in evidence.findings] == [(5,)]
    assert evidence.blind == ()


def test_pickle_and_json_may_lie_side_by_side(look: Look, folder: Path) -> None:
    recorders = hung(5)
    write(recorders, folder, "trace_{}", *range(7))
    (folder / "trace_7.json").write_bytes(as_json(recorders.dump(7)))
    assert [finding.ranks for finding in look().findings] == [(5,)]


def test_of_two_dumps_of_one_rank_the_newer_counts(look: Look, folder: Path) -> None:
    write(hung(5), folder, "b_trace_{}")
    write(hung(2, start=START * 1000 + 10**9), folder, "a_trace_{}")
    assert [finding.ranks for finding in look().findings] == [(2,)]


def test_dumps_of_an_earlier_attempt_in_the_same_folder_blame_nobody(
    look: Look, folder: Path
) -> None:
    write(hung(5, start=START * 1000 - 60 * 10**9), folder)
    evidence = look()
    assert evidence.findings == ()
    assert evidence.unseen == "no dump of this attempt is there"
    assert evidence.blind == ("the dumps of ranks 0-7 are not of this attempt",)
    assert len(look(started_at=Instant(START - 120_000_000)).findings) == 1
    assert len(look(started_at=None).findings) == 1
    assert look(started_at=None, since=Instant(START + 7_200_000_000)).findings == ()


def test_dumps_from_before_the_silence_say_nothing_of_it(look: Look, folder: Path) -> None:
    write(hung(5), folder)
    assert len(look(silent_since=Instant(START + 120_000_000)).findings) == 1
    assert look(silent_since=Instant(START + 600_000_000)).findings == ()


def test_a_half_written_dump_is_read_at_the_next_look(look: Look, folder: Path) -> None:
    recorders = hung(5)
    write(recorders, folder)
    path = folder / "nccl_trace_rank_5"
    path.write_bytes(recorders.pickled(5)[:200])
    evidence = look()
    assert evidence.findings == ()
    assert "may still be being written" in evidence.blind[0]
    assert "The dump of rank 5 could not be read, so whether they called" in evidence.blind[1]
    path.write_bytes(recorders.pickled(5))
    assert [finding.ranks for finding in look().findings] == [(5,)]


def test_a_hostile_dump_is_refused_and_told_of(look: Look, folder: Path) -> None:
    write(hung(5), folder)
    (folder / "nccl_trace_rank_3").write_bytes(b"\x80\x04cos\nsystem\n(X\x04\0\0\0exit\x85R.")
    rules = [finding.rule for finding in look().findings]
    assert rules == ["rank-not-joined", "recorder-refused"]


@pytest.mark.parametrize("stem", ["nccl_trace_rank_", "site_dump_"])
def test_a_file_that_bears_a_dumps_name_and_is_none_is_told_of(
    look: Look, folder: Path, stem: str
) -> None:
    write(hung(5), folder, stem + "{}")
    (folder / f"{stem}3").write_text("hello garbage")
    rules = [(one.rule, one.ranks) for one in look().findings]
    assert rules == [("rank-not-joined", (5,)), ("recorder-refused", (3,))]
    gathered = gather_own(str(folder))
    assert (gathered.unread, gathered.refused[0].rank) == (frozenset({3}), 3)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("relative/path", "no absolute path"),
        ("/proc/self/", "folders outside those"),
        ("{folder}/nothing_", "named by a rank"),
    ],
)
def test_where_no_dump_is_it_is_said_and_nothing_is_concluded(
    look: Look, folder: Path, path: str, said: str
) -> None:
    evidence = look(path.format(folder=folder))
    assert evidence.findings == ()
    assert said in evidence.unseen


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")
def test_dumps_are_read_with_the_rights_of_the_jobs_owner(look: Look, folder: Path) -> None:
    write(hung(5), folder)
    for path in folder.iterdir():
        path.chmod(0o600)
        os.chown(path, GAMES, GAMES)
    assert len(look(uid=GAMES).findings) == 1
    refused = look(uid=NOBODY)
    assert refused.findings == ()
    assert "may not read it" in refused.unseen
    assert "whose job it is" in look(uid=None).unseen


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")
def test_a_link_to_somebody_elses_file_is_not_followed_to_its_end(look: Look, folder: Path) -> None:
    secret = folder / "secret"
    secret.write_bytes(hung(5).pickled(0))
    secret.chmod(0o600)
    (folder / "dumps").mkdir()
    (folder / "dumps" / "trace_0").symlink_to(secret)
    assert "may not read it" in look(folder / "dumps", uid=NOBODY).unseen


def test_a_look_ends_in_time_and_says_what_it_left(readers: OwnerReaders, folder: Path) -> None:
    write(hung(5), folder)
    ticks = iter(range(0, 1_000, 5))
    source = FlightDumps(
        readers=readers, now=lambda: Instant(START), monotonic=lambda: float(next(ticks))
    )
    assert any("left unread" in one for one in source.look(window_of(folder)).blind)


def many(folder: Path, *absent: int) -> None:
    recorders = Recorders(100, start=START * 1000)
    for _ in range(3):
        recorders.call(stack=LOADER)
    ranks = [rank for rank in range(100) if rank not in absent]
    recorders.call(ranks=ranks, state="started")
    write(recorders, folder)


def test_of_many_dumps_those_of_late_ranks_are_read_in_full_first(
    readers: OwnerReaders, folder: Path
) -> None:
    """Time is up after the brief look at all and three dumps more."""
    many(folder, 93)
    left = iter([0.0, *([1.0] * 203), *([100.0] * 1_000)])
    source = FlightDumps(readers=readers, now=lambda: Instant(START), monotonic=lambda: next(left))
    (finding,) = source.look(window_of(folder)).findings
    assert finding.ranks == (93,)
    assert "data.py:12 in next_batch (loading data)" in finding.sentence
    assert not any("steps.py" in line.text for line in finding.evidence)


def test_many_dumps_are_all_read_in_full_where_time_allows(look: Look, folder: Path) -> None:
    many(folder, 93)
    (finding,) = look().findings
    assert finding.ranks == (93,)
    assert any("steps.py" in line.text for line in finding.evidence)


def test_the_callers_own_dumps_are_read_with_the_callers_rights(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(hung(5), folder)
    os.mkfifo(folder / "nccl_trace_rank_8")
    monkeypatch.chdir(folder)
    for path in (".", "nccl_trace_rank_", "nccl_*", str(folder)):
        gathered = gather_own(path)
        assert [dump.rank for dump in gathered.dumps] == list(range(8)), path
        assert gathered.blind == ()
    assert "named by a rank" in gather_own("nothing").unseen
    assert gather_own("[z-a]*").unseen


def test_a_rank_is_placed_by_its_own_word_else_by_arithmetic_where_that_holds() -> None:
    told = {1: "node-1.cluster", 2: "node-9"}
    assert [nodes_by_rank(NODES, told)(rank) for rank in (0, 1, 2, 7, 8)] == [
        *("node-0", "node-1", None, "node-1", None)
    ]
    by_launcher = Allocation(nodes=("a", "b"), tasks_per_node=1)
    assert nodes_by_rank(by_launcher)(1) is None
    one_each = Allocation(nodes=("a", "b"), tasks_per_node=1)
    assert nodes_by_rank(one_each, world=2)(1) == "b"
    assert nodes_by_rank(one_each, world=16)(1) is None
    assert nodes_by_rank(Allocation(nodes=("a",)))(5) == "a"
    assert nodes_by_rank(Allocation(), told)(2) == "node-9"
