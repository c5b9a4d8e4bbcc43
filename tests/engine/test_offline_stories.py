"""Whole logs, read with the packaged rules: what is said of each, and why it must be so."""

from __future__ import annotations

import functools
from textwrap import dedent

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.engine.offline import examine
from relight.model.advice import Decision
from relight.model.findings import Domain, End
from relight.model.instants import from_iso
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.records import Record
from relight.model.reports import FileReport, Happened, LogFile, Report
from relight.perception.ears import Ears, Lexicon
from relight.perception.reporting import report_of
from relight.rules.loading import load

NOW = from_iso("2027-01-01T00:00:00Z")
ATTEMPT = AttemptKey(job=JobKey(cluster="test", scheduler_id="1"), attempt=0)


@functools.cache
def lexicon() -> Lexicon:
    return Lexicon(load())


def report(*logs: str, nodes: tuple[str, ...] = ()) -> Report:
    """Return the report on logs, each a file named by its number."""
    ears = Ears(lexicon=lexicon(), attempt=ATTEMPT)
    files = [
        report_of(LogFile(file=f"{number}.log"), [dedent(log).lstrip("\n").encode()], ears, NOW)
        for number, log in enumerate(logs)
    ]
    return examine(files, Allocation(nodes=nodes))


class Says(Record, frozen=True, kw_only=True):
    """What a report must say; None where it does not matter."""

    kind: Happened
    decision: Decision
    domain: Domain | None = None
    family: str | None = None
    line: int | None = None
    ranks: tuple[int, ...] | None = None
    nodes: tuple[str, ...] | None = None
    ending: End | None = None


def iterations(first: int, last: int) -> str:
    """Return Megatron's lines of these iterations, one in ten seconds."""
    return "\n".join(
        f" [2026-03-01 10:{number // 6 % 60:02d}:{number % 6 * 10:02d}] "
        f"iteration {number:8d}/  100000 | consumed samples: 1 | "
        "elapsed time per iteration (ms): 10000.0 | "
        "learning rate: 1.0E-04 | "
        "global batch size:   256 | lm loss: 2.300000E+00 | loss scale: 1.0 | grad norm: 0.4 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |"
        for number in range(first, last + 1)
    )


def box(rank: int, host: str, code: int, at: str, first: str = "") -> str:
    """Return one entry of torchelastic's report."""
    return "\n".join(
        (
            f"[{first or rank}]:",
            f"  time      : {at}",
            f"  host      : {host}",
            f"  rank      : {rank} (local_rank: {rank % 8})",
            f"  exitcode  : {code} (pid: {4000 + rank})",
            "  error_file: <N/A>",
            "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
        )
    )


WATCHDOG = (
    "[rank{rank}]:[E301 10:40:00.000000001 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=42, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600008 milliseconds before timing out."
)
OOM = (
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
    "total capacity of 79.10 GiB of which 1.00 GiB is free."
)
XID = (
    "Mar  1 10:00:41 gpu-07 kernel: NVRM: Xid (PCI:0000:07:00): 79, pid=1, name=python, "
    "GPU has fallen off the bus."
)
STATUS = (
    "[rank{rank}]:[E301 10:40:00.000000001 ProcessGroupNCCL.cpp:2271] "
    "[PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work "
    "sequence id: 42 PG status: last enqueued work: {enqueued}, last completed work: 41"
)


def watchdogs(*ranks: int) -> str:
    return "\n".join(WATCHDOG.format(rank=rank) for rank in ranks)


STORIES: dict[str, tuple[str, Says]] = {
    "a run in full swing is well": (
        iterations(1, 8),
        Says(kind=Happened.NONE, decision=Decision.NONE, domain=Domain.NONE),
    ),
    "a watchdog alone is a hang, and whoever prints it is no culprit": (
        f"{iterations(1, 8)}\n{watchdogs(3, 5)}",
        Says(
            kind=Happened.HANG,
            decision=Decision.RESTART,
            domain=Domain.UNKNOWN,
            family="nccl_collective_timeout",
            line=9,
            ranks=(),
            nodes=(),
        ),
    ),
    "the rank that alone does not complain is the one they wait for": (
        f"{iterations(1, 8)}\n{watchdogs(0, 1, 2, 4, 5, 6, 7)}",
        Says(kind=Happened.HANG, decision=Decision.RESTART, ranks=(3,)),
    ),
    "the rank whose last enqueued work is lower never came": (
        iterations(1, 8)
        + "\n"
        + "\n".join(
            STATUS.format(rank=rank, enqueued=41 if rank == 2 else 42) for rank in (0, 1, 2, 5)
        ),
        Says(kind=Happened.HANG, decision=Decision.RESTART, ranks=(2,)),
    ),
    "a user's error on one rank is the root of the time-outs of all others": (
        f"""{iterations(1, 8)}
[rank3]: Traceback (most recent call last):
[rank3]:   File "/workspace/train.py", line 10, in main
[rank3]:     batch["label"]
[rank3]: KeyError: 'label'
{watchdogs(0, 1, 2)}
""",
        Says(
            kind=Happened.CRASH,
            decision=Decision.STOP,
            domain=Domain.APPLICATION,
            line=12,
            ranks=(3,),
        ),
    ),
    "an error that was caught and trained past is nothing": (
        f"""{iterations(1, 4)}
Traceback (most recent call last):
  File "/workspace/data.py", line 10, in fetch
    raise ValueError("bad sample")
ValueError: bad sample
{iterations(5, 12)}
""",
        Says(
            kind=Happened.NONE,
            decision=Decision.NONE,
            family="benign_retry_recovered",
        ),
    ),
    "broken hardware goes before a user's error, and its node out": (
        f"""{iterations(1, 4)}
[rank1]: Traceback (most recent call last):
[rank1]:   File "/workspace/train.py", line 10, in main
[rank1]:     x.foo
[rank1]: AttributeError: 'NoneType' object has no attribute 'foo'
{XID}
""",
        Says(
            kind=Happened.CRASH,
            decision=Decision.RESTART_EXCLUDING_NODE,
            domain=Domain.HARDWARE,
            nodes=("gpu-07",),
        ),
    ),
    "of several boxes the earliest time tells who died first": (
        f"""{iterations(1, 4)}
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Root Cause (first observed failure):
{box(1, "node-a", 1, "2026-03-01_10:10:09")}
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Root Cause (first observed failure):
{box(9, "node-b", -9, "2026-03-01_10:10:01")}
""",
        Says(
            kind=Happened.CRASH,
            decision=Decision.RESTART,
            domain=Domain.UNKNOWN,
            ranks=(9,),
            nodes=("node-b",),
        ),
    ),
    "a person's scancel is no failure, whatever is printed while stopping": (
        f"""{iterations(1, 4)}
slurmstepd: error: *** STEP 77.0 ON node-a CANCELLED AT 2026-03-01T10:01:00 ***
Traceback (most recent call last):
  File "/workspace/train.py", line 10, in main
    sock.send(data)
BrokenPipeError: [Errno 32] Broken pipe
srun: error: node-b: task 3: Terminated
""",
        Says(
            kind=Happened.NONE,
            decision=Decision.NONE,
            domain=Domain.USER,
            family="user_cancelled",
            line=5,
            ending=End.CANCELLED,
            nodes=(),
        ),
    ),
    "what failed before the scancel stays the root": (
        f"""{iterations(1, 4)}
[rank5]: Traceback (most recent call last):
[rank5]:   File "/workspace/train.py", line 10, in main
[rank5]:     f(x)
[rank5]: TypeError: f() missing 1 required positional argument: 'y'
slurmstepd: error: *** STEP 77.0 ON node-a CANCELLED AT 2026-03-01T10:01:00 ***
""",
        Says(kind=Happened.CRASH, decision=Decision.STOP, line=8, ranks=(5,)),
    ),
    "the time limit ends a run that is well": (
        f"""{iterations(1, 4)}
slurmstepd: error: *** JOB 77 ON node-a CANCELLED AT 2026-03-01T10:01:00 DUE TO TIME LIMIT ***
""",
        Says(
            kind=Happened.NONE,
            decision=Decision.RESTART,
            family="slurm_time_limit",
            ending=End.TIMEOUT,
        ),
    ),
    "a run that stood still for hours before its time limit hung": (
        f"""{iterations(1, 40)}
slurmstepd: error: *** JOB 77 ON node-a CANCELLED AT 2026-03-01T18:01:00 DUE TO TIME LIMIT ***
""",
        Says(kind=Happened.HANG, decision=Decision.RESTART, family="silent_hang"),
    ),
    "a death that no rule knows is unknown": (
        f"""{iterations(1, 4)}
frobnicator: cannot reach the flux capacitor
worker 3 exited with code 77
""",
        Says(kind=Happened.CRASH, decision=Decision.RESTART, domain=Domain.UNKNOWN),
    ),
    "out of memory in the first step would come again": (
        f"""
[rank0]: Traceback (most recent call last):
[rank0]:   File "/workspace/train.py", line 10, in main
[rank0]:     loss.backward()
{OOM}
""",
        Says(kind=Happened.CRASH, decision=Decision.STOP, family="device_oom", line=4),
    ),
    "out of memory after a thousand steps may not": (
        f"""{iterations(1, 1000)}
[rank0]: Traceback (most recent call last):
[rank0]:   File "/workspace/train.py", line 10, in main
[rank0]:     loss.backward()
{OOM}
""",
        Says(kind=Happened.CRASH, decision=Decision.RESTART, family="device_oom"),
    ),
    "a parent's exception passes on what broke in its child": (
        """
Traceback (most recent call last):
  File "/workspace/launch.py", line 10, in main
    raise subprocess.CalledProcessError(returncode, cmd)
subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1.
Traceback (most recent call last):
  File "/workspace/train.py", line 3, in main
    cfg["lr"]
KeyError: 'lr'
""",
        Says(kind=Happened.CRASH, decision=Decision.STOP, line=8),
    ),
    "Ctrl-C is a person's": (
        f"""{iterations(1, 4)}
^CTraceback (most recent call last):
  File "/workspace/train.py", line 10, in main
    time.sleep(1)
KeyboardInterrupt
""",
        Says(kind=Happened.NONE, decision=Decision.NONE, domain=Domain.USER, ending=End.CANCELLED),
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_a_log_is_read_as_a_person_on_call_would(name: str) -> None:
    log, says = STORIES[name]
    said = report(log)
    told = {
        "kind": said.kind,
        "decision": said.decision,
        "domain": said.domain,
        "family": said.family,
        "line": said.root.line if said.root else None,
        "ranks": said.ranks,
        "nodes": said.nodes,
        "ending": said.ending,
    }
    for key, value in msgspec.structs.asdict(says).items():
        if value is not None:
            assert told[key] == value, (key, said.sentence)
    assert said.sentence.endswith(".")
    assert said.why.endswith(".")
    assert 0 < said.confidence < 1


FAILS = """
Traceback (most recent call last):
  File "/workspace/train.py", line 3, in main
    cfg["lr"]
KeyError: 'lr'
"""


def test_over_several_files_the_first_in_time_is_the_root() -> None:
    fault = "RuntimeError: CUDA error: an illegal memory access was encountered"
    late, early = f"2026-03-01 10:05:00 [rank0] {fault}", f"2026-03-01 10:01:00 [rank3] {fault}"
    for logs in ((late, early), (early, late)):
        said = report(*logs)
        assert said.root is not None
        assert "10:01:00" in said.root.text


def test_without_times_a_root_in_any_file_goes_before_the_symptoms_of_the_others() -> None:
    said = report(watchdogs(0), FAILS, watchdogs(1))
    assert said.root is not None
    assert said.root.file == "1.log"
    assert said.decision is Decision.STOP
    assert {one.rule for one in said.set_aside} == {"nccl-watchdog-timeout"}


def test_an_allocation_gives_the_names_of_its_nodes_and_refuses_those_of_others() -> None:
    log = f"{iterations(1, 4)}\n{XID}"
    said = report(log, nodes=("gpu-07.cluster", "gpu-08.cluster"))
    assert said.nodes == said.exclude == ("gpu-07.cluster",)
    foreign = report(log, nodes=("gpu-01", "gpu-02"))
    assert foreign.nodes == ()
    assert foreign.decision is not Decision.RESTART_EXCLUDING_NODE


def test_without_a_file_or_a_line_nothing_can_be_said() -> None:
    for said in (report(), report("")):
        assert said.kind is Happened.NONE
        assert said.confidence < 0.1
        assert "empty" in said.sentence


def test_what_is_shown_of_a_root_has_its_lines_around_it() -> None:
    said = report(f"{iterations(1, 3)}\n{FAILS.strip()}\nlast words\n")
    assert said.root is not None
    assert said.root.text == "KeyError: 'lr'"
    assert said.root.line == 7
    assert said.root.after == ("last words",)
    assert said.root.before[0] == "Traceback (most recent call last):"
    assert said.last_step == 3


def test_a_report_can_be_written_and_read_back() -> None:
    said = report(f"{iterations(1, 3)}\n{FAILS}\n{watchdogs(1, 2)}")
    assert msgspec.json.decode(msgspec.json.encode(said), type=Report) == said


@given(st.lists(st.sampled_from([XID, OOM, FAILS, iterations(1, 3), watchdogs(1, 2), "\r\x1b["])))
@settings(max_examples=60, deadline=None)
def test_whatever_is_thrown_together_a_report_keeps_its_promises(parts: list[str]) -> None:
    said = report("\n".join(parts))
    assert (said.kind is Happened.NONE) or said.decision is not Decision.NONE
    assert said.ending is None or said.kind is Happened.NONE
    assert not said.exclude or said.decision is Decision.RESTART_EXCLUDING_NODE
    assert set(said.exclude) <= set(said.nodes)
    assert 0 < said.confidence < 1
    if said.kind is Happened.CRASH:
        assert said.root is not None


@given(st.binary(max_size=2000))
@settings(max_examples=60, deadline=None)
def test_any_bytes_lead_to_a_report(data: bytes) -> None:
    ears = Ears(lexicon=lexicon(), attempt=ATTEMPT)
    said = examine([report_of(LogFile(file="x"), [data], ears, NOW)], Allocation())
    assert said.sentence.endswith(".")


def test_a_file_that_could_not_be_read_at_all_has_no_run_and_is_no_failure() -> None:
    said = examine([FileReport(file="x", trouble="no rights")], Allocation())
    assert said.kind is Happened.NONE
    assert said.confidence < 0.1
