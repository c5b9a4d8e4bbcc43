"""``relight diagnose --flight-recorder``: dumps beside logs, alone, and hostile."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from relight.cli import app
from relight.testing.flight_dumps import Recorders

Said = tuple[int, str, str]
Say = Callable[..., Said]
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
