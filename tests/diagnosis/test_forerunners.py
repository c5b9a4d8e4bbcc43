"""What came just before explains a failure: memory that ran out, work of one rank alone."""

from __future__ import annotations

import msgspec
import pytest

from relight.diagnosis.forerunners import with_cause, with_lone_work, with_sender
from relight.model.findings import Domain, Evidence, Finding, Kind, Remedy, Role
from relight.testing.stories import finding


def told(  # noqa: PLR0913 - the fields that these stories differ in
    family: str,
    offset: int,
    *,
    role: Role = Role.SYMPTOM,
    ranks: tuple[int, ...] = (),
    kind: Kind = Kind.CRASH,
    before: str = "",
) -> Finding:
    made = finding(family, offset=offset, role=role, ranks=ranks, kind=kind, domain=Domain.UNKNOWN)
    evidence = (Evidence(text=before), *made.evidence) if before else made.evidence
    return msgspec.structs.replace(
        made, family=family, evidence=evidence, sentence=f"{family} was told."
    )


FULL = told("host_oom_kill", 3)
KILLED = told("process_killed_sigkill", 5)
REFUSED = told("device_oom", 3, ranks=(2,))
BLAS = told("cuda_library_error", 5, role=Role.EITHER, ranks=(2,))


def test_memory_that_was_nearly_full_tells_who_killed() -> None:
    sent = with_sender(KILLED, [KILLED, FULL])
    assert (sent.id, sent.family, sent.role) == (KILLED.id, "host_oom_kill", Role.EITHER)
    assert "Before that: host_oom_kill" in sent.sentence
    late = told("host_oom_kill", 9)
    assert with_sender(KILLED, [KILLED, late]) == KILLED, "what comes later explains nothing"
    assert with_sender(BLAS, [BLAS, FULL]) == BLAS


@pytest.mark.parametrize(
    ("earlier", "is_cause"),
    [
        (REFUSED, True),
        (told("device_oom", 3), True),
        (told("device_oom", 9, ranks=(2,)), False),
        (told("device_oom", 3, ranks=(7,)), False),
        (told("disk_full", 3), False),
    ],
    ids=["same rank", "no rank", "later", "another rank", "another matter"],
)
def test_an_allocation_that_failed_before_is_the_cause_of_a_library_that_did_not_start(
    earlier: Finding, *, is_cause: bool
) -> None:
    root = with_cause(BLAS, [BLAS, earlier])
    assert root.id == (earlier.id if is_cause else BLAS.id)
    if is_cause:
        assert root.remedy is Remedy.CONFIRM_THEN_STOP
        assert root.role is Role.EITHER


@pytest.mark.parametrize(
    ("before", "alone"),
    [
        ("Running tokenizer on dataset:   9%|x| 312/3101 [29:48<4:26:33, 174.46 examples/s]", True),
        ("Map (num_proc=8):  41%|####      | 41/100 [10:00<14:00]", True),
        ("> building indices and cache: building the shuffle index", True),
        ("saving checkpoint at iteration 500 to /ckpt", True),
        ("Downloading shards:  50%|#####     | 1/2 [20:00<20:00]", True),
        ("Fetching 30 files:   7%|7| 2/30 [09:00<02:06:00]", True),
        ("Running tokenizer on dataset: 100%|##########| 31/31 [00:10<00:00]", False),
        ("saving checkpoint at iteration 500: done", False),
        ("iteration 500/ 1000 | lm loss: 2.3", False),
        ("", False),
    ],
)
def test_ranks_that_wait_while_one_works_alone_wait_for_it(before: str, *, alone: bool) -> None:
    root = told("nccl_collective_timeout", 9, kind=Kind.HANG, before=before)
    found = with_lone_work(root)
    assert (found.family == "rank0_work_timeout") is alone
    assert (found.domain is Domain.APPLICATION) is alone
    assert found.id == root.id


def test_only_a_wait_has_somebody_who_is_waited_for() -> None:
    crash = told("nccl_collective_timeout", 9, before="Downloading shards: 50%")
    assert with_lone_work(crash) == crash
