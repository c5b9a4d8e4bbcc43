"""Whole logs of runs that were ended from outside, that left by themselves, or that began again."""

from __future__ import annotations

import functools
from textwrap import dedent

import msgspec
import pytest

from relight.engine.offline import examine
from relight.model.advice import Decision
from relight.model.findings import Domain, End
from relight.model.instants import from_iso
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.reports import Happened, LogFile, Report
from relight.perception.ears import Ears, Lexicon
from relight.perception.reporting import report_of
from relight.rules.loading import load

NOW = from_iso("2027-01-01T00:00:00Z")
ATTEMPT = AttemptKey(job=JobKey(cluster="test", scheduler_id="1"), attempt=0)


@functools.cache
def ears() -> Ears:
    return Ears(lexicon=Lexicon(load()), attempt=ATTEMPT)


def report(*logs: str, nodes: tuple[str, ...] = ()) -> Report:
    files = [
        report_of(LogFile(file=f"{number}.log"), [dedent(log).lstrip("\n").encode()], ears(), NOW)
        for number, log in enumerate(logs)
    ]
    return examine(files, Allocation(nodes=nodes))


def steps(
    first: int, last: int, *, minute: int = 0, stamp: str = "[2026-03-01 10:{m:02d}:{s:02d}] "
) -> str:
    """Return lines of these iterations, one in ten seconds."""
    lines = []
    for number in range(first, last + 1):
        seconds = 60 * minute + 10 * (number - first)
        shown = stamp.format(m=seconds // 60, s=seconds % 60)
        lines.append(
            f"{shown}iteration {number:8d}/  100000 | elapsed time per iteration (ms): 10000.0 | "
            "lm loss: 2.300000E+00 |\n"
        )
    return "".join(lines)


def test_a_run_that_was_told_to_stop_and_saves_itself_was_preempted() -> None:
    said = report(
        steps(1, 8)
        + "2026-03-01 10:01:12 WARNING Received 15 death signal, shutting down workers\n"
        + "2026-03-01 10:01:20 INFO saving checkpoint of step 8 and leaving\n"
    )
    assert said.kind is Happened.NONE
    assert said.ending is End.PREEMPTED
    assert said.family == "graceful_checkpoint_exit"
    assert said.decision is Decision.RESTART


def test_a_run_that_was_told_to_stop_by_nobody_knows_whom_was_cancelled() -> None:
    said = report(steps(1, 8) + "W: Received 15 death signal, shutting down workers\n")
    assert said.ending is End.CANCELLED
    assert said.decision is Decision.NONE
    assert "does not say who" in said.sentence
    assert said.root is not None
    assert said.root.line == 9


def test_what_breaks_in_exit_functions_is_noise_after_the_work() -> None:
    said = report(
        steps(1, 8)
        + "model saved to runs/a/model\n"
        + "terminate called after throwing an instance of 'std::runtime_error'\n"
        + "Error in atexit._run_exitfuncs:\n"
        + "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Deadline Exceeded\n"
    )
    assert said.kind is Happened.NONE
    assert said.ending is End.FINISHED
    assert said.decision is Decision.NONE


def test_what_broke_before_the_exit_functions_stays_a_failure() -> None:
    said = report(
        steps(1, 8)
        + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
        + "Error in atexit._run_exitfuncs:\n"
        + "RuntimeError: the pool is gone\n"
    )
    assert said.kind is Happened.CRASH
    assert said.family == "device_oom"


REQUEUE = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/submitit/slurm/slurm.py", line 190, in _requeue
    subprocess.check_call(["scontrol", "requeue", jid])
FileNotFoundError: [Errno 2] No such file or directory: 'scontrol'
"""


def test_a_requeue_that_fails_is_a_failure_of_its_own() -> None:
    word = (
        "submitit WARNING (2026-03-01 10:01:20) - Caught signal SIGUSR1 on n1: "
        "this job is timed-out.\n"
    )
    said = report(steps(1, 8) + word + REQUEUE)
    assert said.kind is Happened.CRASH
    assert said.ending is None
    assert said.root is not None
    assert "scontrol" in said.root.text


def test_what_a_run_prints_while_it_is_ended_by_force_is_none() -> None:
    word = (
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:01:20 "
        "DUE TO TIME LIMIT ***\n"
    )
    said = report(steps(1, 8) + word + REQUEUE)
    assert said.kind is Happened.NONE
    assert said.ending is End.TIMEOUT


KERNEL = """\
[74889.644112] NVRM: GPU at PCI:0000:02:00: GPU-60d987e0-5b28-3bf6-2a2d-1d5ecae7f6df
[74889.644138] NVRM: Xid (PCI:0000:02:00): 79, pid=4401, name=python, GPU has fallen off the bus.
"""
DIED = "[rank2]: RuntimeError: CUDA error: unspecified launch failure\n"


@pytest.mark.parametrize("log", [KERNEL + steps(1, 8) + DIED, steps(1, 8) + DIED + KERNEL])
def test_the_kernels_lines_stand_beside_those_of_the_job_and_tell_why_it_died(log: str) -> None:
    said = report(log)
    assert said.domain is Domain.HARDWARE
    assert said.family == "gpu_fallen_off_bus"


def test_a_job_that_goes_on_outlived_what_the_kernel_told() -> None:
    assert report(KERNEL + steps(1, 8)).kind is Happened.NONE


TAKEN = "Instance k-1 (node IP: 10.1.0.9) will be terminated soon (reason: spot).\n"
DEAD = (
    "(raylet) The node with node id: 99aa and address: 10.1.0.{last} and node name: "
    "10.1.0.{last} has been marked dead because the detector has missed too many heartbeats.\n"
)


def test_a_machine_that_was_taken_back_does_not_fail_as_a_node() -> None:
    said = report(steps(1, 8) + TAKEN + DEAD.format(last=9))
    assert said.ending is End.PREEMPTED
    assert said.decision is Decision.RESTART
    other = report(steps(1, 8) + TAKEN + DEAD.format(last=7))
    assert other.exclude == ("10.1.0.7",)


def test_a_clock_that_stands_still_tells_of_no_silence() -> None:
    outer = "2026-03-01T10:00:00.123Z "
    log = (
        "".join(outer + line + "\n" for line in steps(1, 8).splitlines())
        + "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T17:20:00 ***\n"
    )
    assert report(log).kind is Happened.NONE
    assert report(log).ending is End.CANCELLED


def test_two_clocks_in_one_file_tell_of_no_silence() -> None:
    tail = "2026-03-01T18:30:00Z collector: rotated the file\n" * 2
    said = report(steps(1, 8) + tail)
    assert said.kind is Happened.NONE
    assert said.decision is Decision.NONE


def test_steps_that_stopped_long_before_the_log_did_are_a_hang() -> None:
    tail = "[2026-03-01 11:20:00] heartbeat of the launcher\n[2026-03-01 11:21:00] heartbeat\n"
    said = report(steps(1, 8) + tail)
    assert said.kind is Happened.HANG
    assert said.family == "silent_hang"


def test_the_steps_of_a_file_without_times_say_nothing_of_another_files_error() -> None:
    without = "".join(f"step {number} loss 2.3 time/step 1.0s\n" for number in range(1, 60))
    error = "2026-03-01 10:00:00 RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    said = report(without, error)
    assert said.domain is Domain.HARDWARE
    assert said.kind is Happened.CRASH


def test_a_launchers_word_on_an_exit_places_a_mistake_but_blames_no_node() -> None:
    said = report(
        """
        0: Traceback (most recent call last):
        0:   File "/w/train.py", line 3, in <module>
        0:     import nothing_here
        0: ModuleNotFoundError: No module named 'nothing_here'
        srun: error: n1: task 0: Exited with exit code 1
        srun: error: n2: task 1: Terminated
        """
    )
    assert said.decision is Decision.STOP
    assert not said.exclude


def test_runs_that_died_alike_without_a_step_gained_are_stopped_and_it_is_said() -> None:
    begin = "[2026-03-01 10:00:00] Starting elastic_operator with launch configs:\n"
    once = (
        begin
        + steps(1, 2, stamp="")
        + (
            "[rank3]: Traceback (most recent call last):\n"
            '[rank3]:   File "/w/train.py", line 3, in f\n'
            "[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
        )
    )
    assert report(once).decision is Decision.RESTART
    said = report(once * 3)
    assert said.attempts == 3
    assert said.decision is Decision.STOP
    assert "3 runs ended in the same way" in said.why


def test_the_line_below_a_report_of_slow_ranks_names_their_node() -> None:
    said = report(
        steps(1, 8)
        + "Detected stragglers: [6]\n  Rank 5 (gx-10)\n  Rank 6 (gx-11)\n"
        + steps(9, 12)
    )
    assert said.kind is Happened.STRAGGLER
    assert said.ranks == (6,)
    assert said.nodes == ("gx-11",)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            "[rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
            "A GPU met an uncorrectable memory error (ECC) (rank 1).",
        ),
        (
            "h7: [rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
            "A GPU of h7 met an uncorrectable memory error (ECC) (rank 1).",
        ),
    ],
)
def test_a_place_is_told_once(line: str, sentence: str) -> None:
    assert report(steps(1, 3) + line).sentence == sentence


def test_where_a_rank_said_at_start_that_it_runs_places_what_breaks_there() -> None:
    begin = "".join(f"[h{rank}] starting rank {rank} of 3\n" for rank in range(3))
    ecc = "[rank2]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    file = report_of(LogFile(file="a.log"), [(begin + steps(1, 3) + ecc).encode()], ears(), NOW)
    told = msgspec.structs.replace(file, hosts={0: "h0", 1: "h1", 2: "h2"})
    assert examine([told], Allocation()).exclude == ("h2",)
    other = msgspec.structs.replace(told, file="b.log", findings=(), hosts={2: "h9"})
    assert examine([told, other], Allocation()).exclude == (), "two files that differ say nothing"


def test_a_run_that_went_on_from_its_own_checkpoint_outlived_its_end() -> None:
    word = "Instance k-1 (node IP: 10.1.0.9) will be terminated soon (reason: spot).\n"
    file = report_of(LogFile(file="a.log"), [(steps(1, 8) + word).encode()], ears(), NOW)
    assert examine([file], Allocation()).ending is End.PREEMPTED
    run = file.runs[-1]
    went_on = msgspec.structs.replace(run.progress, last_step=20, best_step=20, resumed_from=6)
    again = msgspec.structs.replace(file, runs=(msgspec.structs.replace(run, progress=went_on),))
    assert examine([again], Allocation()).ending is None
    assert examine([again], Allocation()).decision is Decision.NONE


def test_a_kill_a_few_steps_before_the_end_by_force_is_why() -> None:
    said = report(
        steps(1, 8)
        + "kernel: Out of memory: Killed process 4401 (python3) total-vm:123kB, anon-rss:99kB\n"
        + steps(9, 10)
        + "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:02:00 ***\n"
    )
    assert said.kind is Happened.CRASH
    assert said.family == "host_oom_kill"


def test_ranks_that_met_a_broken_gpu_are_those_of_what_the_kernel_tells() -> None:
    said = report(
        "h1: start\n"
        + steps(1, 3)
        + "Mar 01 10:00:30 h1 kernel: NVRM: Xid (PCI:0000:9b:00): 95, pid=88120, name=python3, "
        "Uncontained ECC error. RST: Yes, D-RST: No\n"
        "[rank45]: torch.AcceleratorError: CUDA error: unspecified launch failure\n"
    )
    assert said.nodes == ("h1",)
    assert said.ranks == (45,)


CONNECTS = (
    "{node}:1:1 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 169.254.3.1<367> "
    "failed : Software caused connection abort\n"
)


@pytest.mark.parametrize(
    ("exits", "nodes"),
    [
        ("srun: error: n2: tasks 8-11: Exited with exit code 1\n", ("n2",)),
        ("srun: error: n2: tasks 0-3: Exited with exit code 1\n", ()),
        ("srun: error: n2: task 8: Exited with exit code 1\n", ()),
        (
            (
                "srun: error: n2: tasks 8-11: Exited with exit code 1\n"
                "srun: error: n3: tasks 12-15: Exited with exit code 1\n"
            ),
            (),
        ),
    ],
    ids=[
        "its tasks alone died",
        "no tasks before them",
        "one task only",
        "another node's died too",
    ],
)
def test_a_node_that_alone_connects_to_nobody_is_where_it_failed(
    exits: str, nodes: tuple[str, ...]
) -> None:
    assert report(CONNECTS.format(node="n2") * 2 + exits).nodes == nodes
