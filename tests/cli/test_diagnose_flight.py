"""``relight diagnose --flight-recorder``: dumps beside logs, alone, and hostile."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from relight.cli import app
from relight.testing.flight_dumps import Recorders

Said = tuple[int, str, str]
Say = Callable[..., Said]
START = Recorders(1).start
STEPS = "".join(f"step {number}/100 loss 2.5\n" for number in range(1, 50))
WATCHDOG = (
    "[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600038 milliseconds before timing out.\n"
)
HOSTS = "".join(
    f"node-{rank // 4}:{rank}:{rank} [{rank % 4}] NCCL INFO comm 0x{rank:x}a rank {rank} nranks 8 "
    "cudaDev 0 busId 1 - Init COMPLETE\n"
    for rank in range(8)
)
ON_NODES = ("--nodes", "node-[0-1]", "--tasks-per-node", "4")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def say(
    cache: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Say:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "dumps").mkdir()

    def run(*words: str) -> Said:
        code = app.run(("diagnose", *words))
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return run


def stamped(later: float, steps: range, *, cancelled: bool = False) -> str:
    """Return a log that tells its last step so many seconds after the ranks began to wait."""
    start = datetime.fromtimestamp(START / 1e9 + later - 49, UTC)
    clock = [f"{start + timedelta(seconds=step):%Y-%m-%d %H:%M:%S}" for step in steps]
    text = "".join(f"{at} step {n}/100 loss 2.5\n" for at, n in zip(clock, steps, strict=True))
    end = f"{start + timedelta(seconds=400):%Y-%m-%dT%H:%M:%S}"
    killed = f"slurmstepd: error: *** JOB 123 ON node-1 CANCELLED AT {end} ***\n"
    return text + (killed if cancelled else "")


def write(*absent: int, ended: bool = False) -> None:
    recorders = Recorders(8)
    recorders.call()
    ranks = [rank for rank in range(8) if rank not in absent]
    recorders.call(ranks=ranks, state="completed" if ended else "started")
    for rank in range(8):
        Path(f"dumps/nccl_trace_rank_{rank}").write_bytes(recorders.pickled(rank))


def test_dumps_alone_name_the_node_that_the_others_wait_for(say: Say) -> None:
    write(4, 5, 6, 7)
    code, out, err = say("--flight-recorder", "dumps", *ON_NODES)
    assert (code, err) == (11, "")
    assert "Ranks 4-7 did not call all_reduce 2" in out
    assert "ranks 4-7: last enqueued 1, last started 1, last completed 1" in out
    assert "node-1" in out


@pytest.mark.parametrize("path", ["dumps", "dumps/", "dumps/nccl_trace_rank_", "dumps/*_[0-9]"])
def test_a_folder_a_prefix_and_a_glob_mean_the_same_dumps(say: Say, path: str) -> None:
    write(4, 5, 6, 7)
    code, out, _ = say("--flight-recorder", path, "--json", *ON_NODES)
    told = json.loads(out)
    assert code == 11
    assert (told["cause"], told["ranks"]) == ("rank-not-joined", [4, 5, 6, 7])
    assert (told["domain"], told["exclude"]) == ("hardware", ["node-1"])
    assert (told["root"]["line"], told["read"]["files"]) == (0, 8)


def test_dumps_beside_a_log_say_who_the_watchdog_waited_for(say: Say) -> None:
    write(4, 5, 6, 7)
    Path("job.log").write_text(HOSTS + STEPS + WATCHDOG)
    code, out, _ = say("--flight-recorder", "dumps", "job.log", "--json")
    told = json.loads(out)
    assert (told["cause"], told["nodes"], code) == ("rank-not-joined", ["node-1"], 11)
    assert told["last_step"] == 49
    assert [line["rule"] for line in told["set_aside"]] == ["nccl-watchdog-timeout"]


@pytest.mark.parametrize("later", [-7200, -40, 0, 7200])
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_dumps_count_whatever_their_age_beside_the_log(
    say: Say, later: int, *, is_cancelled: bool
) -> None:
    """The clock of a log may be hours off: it prints no zone."""
    write(5)
    Path("hung.out").write_text(stamped(later, range(1, 50), cancelled=is_cancelled))
    code, out, err = say("--flight-recorder", "dumps", "hung.out", "--json")
    told = json.loads(out)
    assert (told["cause"], told["kind"], told["ranks"]) == ("rank-not-joined", "hang", [5])
    assert (code, err, told["troubles"], told["read"]["files"]) == (10, "", [], 9)


def test_dumps_of_an_attempt_before_the_logs_last_are_left_out_and_that_is_told(say: Say) -> None:
    write(5)
    again = "Traceback (most recent call last):\nRuntimeError: peer is gone\n"
    log = stamped(-60, range(1, 50)) + again + "torchrun: starting\n" + stamped(600, range(1, 30))
    Path("two.out").write_text(log)
    code, out, err = say("--flight-recorder", "dumps", "two.out", "--json")
    told = json.loads(out)
    assert told["attempts"] == 2
    assert (code, told["ranks"]) == (3, [])
    assert "dumps: the dumps of ranks 0-7 were left out: the log shows an attempt" in err
    assert [one["file"] for one in told["troubles"]] == ["dumps"]


def test_a_run_that_finished_was_not_kept_by_what_its_dumps_show(say: Say) -> None:
    write(5)
    log = stamped(-60, range(1, 101)) + "Training completed.\nsaved checkpoint at step 100\n"
    Path("done.out").write_text(log)
    code, out, err = say("--flight-recorder", "dumps", "done.out", "--json")
    assert (json.loads(out)["ending"], code) == ("finished", 3)
    assert "left out: the log says that the run finished" in err


def test_a_missing_dump_alone_blames_nobody(say: Say) -> None:
    write()
    Path("dumps/nccl_trace_rank_5").unlink()
    code, out, _ = say("--flight-recorder", "dumps", *ON_NODES)
    assert code == 10
    assert "Rank 5 left no dump, so whether they called" in out
    assert "domain      unknown" in out
    assert "network" not in out
    assert "All ranks" not in out


def test_a_garbage_dump_is_told_and_not_called_missing(say: Say) -> None:
    write(5)
    Path("dumps/nccl_trace_rank_3").write_text("hello garbage")
    code, out, err = say("--flight-recorder", "dumps")
    assert code == 3
    assert "nccl_trace_rank_3: it is no dump of a flight recorder" in err
    assert "the dump of rank 3 could not be read" in out
    assert "rank 3 left no dump" not in out
    assert "the node is not known: --nodes with --tasks-per-node tells" in out


def test_where_most_dumps_are_garbage_nothing_is_said_to_be_well(say: Say) -> None:
    write(ended=True)
    for rank in range(1, 8):
        Path(f"dumps/nccl_trace_rank_{rank}").write_text("hello garbage")
    code, out, _ = say("--flight-recorder", "dumps", "--json")
    told = json.loads(out)
    assert (code, told["domain"], told["confidence"]) == (3, "unknown", 0.0)
    assert "the dumps of ranks 1-7 could not be read" in told["sentence"]


def test_one_of_several_ranks_of_a_node_is_a_suspect_and_no_certainty(say: Say) -> None:
    write(5)
    _, out, _ = say("--flight-recorder", "dumps", *ON_NODES)
    assert "node-1, the only suspect (the verdict is 50% sure)" in out
    assert "100%" not in out
    assert "would stay there" not in out


def test_a_quarrel_about_collectives_stops_the_job_and_names_no_node(say: Say) -> None:
    recorders = Recorders(8)
    recorders.call(ranks=range(7), state="started")
    recorders.call(ranks=[7], name="all_gather", state="started")
    for rank in range(8):
        Path(f"dumps/{rank}.pkl").write_bytes(recorders.pickled(rank))
    code, out, _ = say("--flight-recorder", "dumps", "--json", *ON_NODES)
    told = json.loads(out)
    assert (code, told["domain"], told["exclude"]) == (12, "application", [])


def test_dumps_in_which_all_ended_tell_of_nothing_wrong(say: Say) -> None:
    write(ended=True)
    code, out, _ = say("--flight-recorder", "dumps")
    assert code == 0
    assert "no collective that did not end" in out


def test_a_hostile_dump_runs_nothing_and_is_told_on_standard_error(say: Say) -> None:
    write(5)
    hostile = b"\x80\x04cposix\nsystem\n(X\x0d\0\0\0touch touchedtR."
    Path("dumps/nccl_trace_rank_2").write_bytes(hostile)
    code, out, err = say("--flight-recorder", "dumps", *ON_NODES)
    assert code == 3
    assert "nccl_trace_rank_2: it holds GLOBAL at byte 2" in err
    assert "Rank 5 did not call" in out
    assert not Path("touched").exists()


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda: None, "no file there is named by a rank"),
        (lambda: os.mkfifo("dumps/trace_0"), "no file there is named by a rank"),
        (lambda: Path("dumps/trace_0").write_bytes(b""), "it is empty"),
        (lambda: Path("dumps/trace_0").write_bytes(b"\x80\x02}"), "before its end"),
    ],
)
def test_without_a_dump_that_can_be_read_nothing_is_known(
    say: Say, prepare: Callable[[], object], said: str
) -> None:
    prepare()
    code, out, err = say("--flight-recorder", "dumps", "--json")
    told = json.loads(out)
    assert code == 3
    assert said in err
    assert (told["decision"], told["confidence"], told["attempts"]) == ("none", 0.0, 0)


def test_dumps_of_one_job_are_not_used_for_several(say: Say) -> None:
    write(5)
    Path("slurm-1.out").write_text(STEPS)
    Path("slurm-2.out").write_text(STEPS)
    code, _, err = say("--flight-recorder", "dumps", "slurm-1.out", "slurm-2.out")
    assert code == 3
    assert "dumps: it was not used: the logs are of several jobs" in err
