"""What is said of logs is what they show: no checkpoint, no requeue and no place nobody saw."""

from __future__ import annotations

import functools

import pytest

from relight.engine.grounds import ground
from relight.engine.offline import examine
from relight.model.advice import Decision
from relight.model.findings import End
from relight.model.instants import EPOCH
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.reasons import Reason
from relight.model.reports import LogFile, Report
from relight.perception.ears import Ears, Lexicon
from relight.perception.reporting import report_of
from relight.policy.lone import Ruling, rule_on_ending
from relight.rules.loading import load

ATTEMPT = AttemptKey(job=JobKey(cluster="test", scheduler_id="1"), attempt=0)


@functools.cache
def ears() -> Ears:
    return Ears(lexicon=Lexicon(load()), attempt=ATTEMPT)


def report(*lines: str) -> Report:
    text = "".join(f"{line}\n" for line in lines).encode()
    return examine([report_of(LogFile(file="a.log"), [text], ears(), EPOCH)], Allocation())


@pytest.mark.parametrize("code", ["ran-out-by-and-by", "not-done-yet", "slow"])
def test_a_checkpoint_is_spoken_of_only_where_one_was_seen(code: str) -> None:
    ruling = Ruling(decision=Decision.RESTART, reason=Reason(code=code, sentence="Its own words."))
    seen = ground(ruling, saw_checkpoint=True, was_requeued=False, steps=3310)
    unseen = ground(ruling, saw_checkpoint=False, was_requeued=False, steps=3310)
    assert seen == "Its own words."
    assert unseen.endswith("no checkpoint was seen to go on from.")


def test_other_reasons_stay_as_they_are() -> None:
    ruling = rule_on_ending(End.FINISHED, requeues_itself=False)
    told = ground(ruling, saw_checkpoint=False, was_requeued=False, steps=0)
    assert told == ruling.reason.sentence


PREEMPTED = (
    "submitit WARNING (2022-07-12 04:18:45) - Caught signal SIGHUP on n9: this job is preempted."
)


def test_a_job_that_says_that_it_was_requeued_is_left_alone() -> None:
    alone = report("step 200 loss 0.6", "step 210 loss 0.5", PREEMPTED)
    assert alone.decision is Decision.RESTART
    assert "no checkpoint was seen" in alone.why
    requeued = report(
        "step 200 loss 0.6",
        "step 210 loss 0.5",
        PREEMPTED,
        "submitit INFO (2022-07-12 04:18:45) - Requeued job 60601445 (3 remaining timeouts)",
    )
    assert requeued.decision is Decision.NONE
    assert "put back into the queue" in requeued.why


def test_nothing_is_said_to_start_by_itself_without_a_line_that_says_so() -> None:
    said = report("step 300 loss 1.1", "exiting program after receiving SIGTERM.")
    assert said.ending is End.PREEMPTED
    assert "nothing in the log says that it does so by itself" in said.why


def test_who_raised_the_same_without_a_traceback_of_its_own_is_named() -> None:
    said = report(
        "[rank1]: Traceback (most recent call last):",
        '[rank1]:   File "/w/save.py", line 392, in save',
        "[rank1]:     state = shape_of(one)",
        "[rank1]: AttributeError: 'NoneType' object has no attribute 'shape'",
        "[rank0]: AttributeError: 'NoneType' object has no attribute 'shape'",
        "[rank2]: AttributeError: 'NoneType' object has no attribute 'size'",
    )
    assert said.ranks == (0, 1)
    assert said.sentence.endswith("has no attribute 'shape'\" (likewise rank 0).")


@pytest.mark.parametrize(
    ("lines", "ranks", "nodes"),
    [
        (
            [
                "Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000",
                "Duplicate GPU detected : rank 7 and rank 0 both on CUDA device f000",
            ],
            (0, 3, 7),
            (),
        ),
        (
            [
                (
                    "[rank1]: RuntimeError: Detected mismatch between collectives on ranks. "
                    "Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1), but "
                    "Rank 2 is running collective: CollectiveFingerPrint(SequenceNumber=0)"
                )
            ],
            (1, 2),
            (),
        ),
        (
            [
                (
                    "RuntimeError: Timed out initializing process group in store based barrier on "
                    "rank: 1330, for key: store_based_barrier_key:522 (world_size=2048, "
                    "worker_count=1792, timeout=0:30:00)"
                )
            ],
            (),
            (),
        ),
        (
            [
                "OSError: [Errno 122] Disk quota exceeded",
                "srun: error: node-u21: tasks 0-3: Exited with exit code 1",
            ],
            (),
            (),
        ),
    ],
)
def test_both_parties_of_a_quarrel_are_named_and_who_only_reports_is_not(
    lines: list[str], ranks: tuple[int, ...], nodes: tuple[str, ...]
) -> None:
    said = report(*lines)
    assert (said.ranks, said.nodes) == (ranks, nodes)


def test_every_line_that_accuses_is_the_root_an_alternative_or_set_aside() -> None:
    said = report(
        "RuntimeError: CUDA error: unspecified launch failure",
        "[81220.1] NVRM: Xid (PCI:0000:01:00): 109, pid=4, name=python, Ch 28, errorString CTX "
        "SWITCH TIMEOUT, Info 0x2c014",
        "srun: error: n1: task 0: Aborted (core dumped)",
        "[E ProcessGroupNCCL.cpp:494] To avoid data inconsistency, we are taking the entire "
        "process down.",
    )
    told = {said.cause, *(one.cause for one in said.alternatives)}
    told |= {one.rule for one in said.set_aside}
    assert told >= {
        "cuda-launch-failure",
        "xid-context-switch-timeout",
        "slurm-task-died",
        "nccl-taking-process-down",
    }


def test_what_is_heard_of_a_run_that_was_ended_is_set_aside() -> None:
    said = report(
        "step 200 loss 0.6",
        "srun: error: n1: task 0: Terminated",
        "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:02:00 ***",
    )
    assert said.ending is End.CANCELLED
    assert said.set_aside
    assert said.sentence == "It was cancelled; the log does not say by whom."
