"""Whatever files say, a report is made, the same each time, and no run is stopped for nothing."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.engine.offline import examine
from relight.model.advice import Decision
from relight.model.findings import (
    Domain,
    End,
    Evidence,
    Finding,
    Kind,
    Place,
    Provenance,
    Reach,
    Remedy,
    Role,
)
from relight.model.instants import Instant
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.progress import Progress, StepUnit
from relight.model.reports import FileReport, Happened, Report, Run, Shown

KEY = AttemptKey(job=JobKey(cluster="test", scheduler_id="1"), attempt=0)
FILES = ("a.log", "b.log", "rank-3.log")
NODES = ("n1", "n2", "n3", "10.0.0.7", "", "n1.example", "[x", "localhost")
FAMILIES = (
    "device_oom",
    "cuda_library_error",
    "node_failure",
    "process_killed_sigkill",
    "host_oom_kill",
    "nccl_collective_timeout",
    "nccl_remote_error",
    "user_code_exception",
    "graceful_checkpoint_exit",
    "benign_retry_recovered",
    "rendezvous_failed",
)
RULES = ("child-failed", "slurm-task-exited", "sigterm-received", "some-rule", "other-rule")
TEXTS = (
    "",
    "  host      : n2",
    "  rank      : 3 (local_rank: 3)",
    "  exitcode  : -9 (pid: 77)",
    "  time      : 2026-03-01_10:00:00",
    "srun: error: n1: tasks 0-3,9: Exited with exit code 1",
    "srun: error: n[1-2: task 7: Terminated",
    "2026-03-01 10:00:00,1 - INFO - step 7 done",
    "[PG ID 0 Rank 3] last enqueued work: 5, last completed work: 4",
    "ready ranks: [0, 1, 3]",
    "-- Process 3 terminated with the following error:",
    "Error in atexit._run_exitfuncs:",
    "Running tokenizer on dataset:   9%| | 3/31 [00:01<00:09]",
    "10.0.0.7: n1:12:34 [0] NCCL WARN failed",
    "[74889.644138] NVRM: Xid (PCI:0000:02:00): 79",
    "iteration 7/ 100 | loss 2.0",
    "Exited with exit code 1",
    '{"log": "x", "time": "2026-03-01T10:00:00Z"}',
    "\ufffd\u0000 (garbage",
)
AT = st.one_of(st.none(), st.integers(0, 10**16).map(Instant))
REMEDIES = st.sampled_from(Remedy)
TEXT = st.sampled_from(TEXTS)
MAYBE_STEP = st.one_of(st.none(), st.integers(0, 10**9))


@st.composite
def findings(draw: st.DrawFn, file: str) -> Finding:
    line = draw(st.integers(1, 40))
    before = draw(st.lists(TEXT, max_size=2))
    evidence = [Evidence(text=text) for text in before]
    if draw(st.booleans()):
        evidence.append(Evidence(text=draw(TEXT), is_root=True))
    return Finding(
        id=f"{file}-{line}-{draw(st.integers(0, 5))}",
        detector="signatures",
        rule=draw(st.sampled_from(RULES)),
        family=draw(st.sampled_from(FAMILIES)),
        kind=draw(st.sampled_from(Kind)),
        role=draw(st.sampled_from(Role)),
        domain=draw(st.sampled_from(Domain)),
        remedy=draw(REMEDIES),
        attempt=KEY,
        seen_at=Instant(10**16),
        sentence=draw(st.sampled_from(("", "It broke.", "A rank (3) broke on n1."))),
        provenance=draw(st.sampled_from(Provenance)),
        at=draw(AT),
        place=Place(file=file, offset=line * 100, line=line) if draw(st.booleans()) else None,
        nodes=tuple(draw(st.lists(st.sampled_from(NODES), max_size=2))),
        ranks=tuple(draw(st.lists(st.integers(0, 9), max_size=2))),
        tasks=tuple(draw(st.lists(st.integers(0, 9), max_size=2))),
        evidence=tuple(evidence),
        peers=tuple(draw(st.lists(st.sampled_from(NODES), max_size=1))),
        run=draw(st.integers(0, 3)),
        step=draw(MAYBE_STEP),
        ending=draw(st.one_of(st.none(), st.sampled_from(End))),
        reach=draw(st.builds(Reach, one_node=REMEDIES, everywhere=REMEDIES, at_start=REMEDIES)),
        count=draw(st.integers(1, 9)),
        fingerprint=draw(st.sampled_from(("", "same", "other"))),
        task_gone=draw(st.booleans()),
    )


PROGRESS = st.builds(
    Progress,
    best_step=MAYBE_STEP,
    last_step=MAYBE_STEP,
    first_step=MAYBE_STEP,
    best_checkpoint=MAYBE_STEP,
    resumed_from=MAYBE_STEP,
    total=MAYBE_STEP,
    last_step_at=AT,
    step_seconds=st.one_of(st.none(), st.floats(0, 1e6)),
    report_seconds=st.one_of(st.none(), st.floats(0, 1e6)),
    unit=st.sampled_from(StepUnit),
    loss=st.one_of(st.none(), st.floats()),
    nan_losses=st.integers(0, 3),
    is_finished=st.booleans(),
)


@st.composite
def reports(draw: st.DrawFn, file: str) -> FileReport:
    tail = draw(st.lists(TEXT, max_size=6))
    runs = draw(st.lists(PROGRESS, max_size=3))
    return FileReport(
        file=file,
        lines=len(tail),
        node=draw(st.one_of(st.none(), st.sampled_from(NODES))),
        findings=tuple(draw(st.lists(findings(file), max_size=6))),
        runs=tuple(
            Run(number=number, first_line=number, last_line=number, progress=one)
            for number, one in enumerate(runs)
        ),
        tail=tuple(Shown(file=file, line=n + 1, text=text) for n, text in enumerate(tail)),
        first_at=draw(AT),
        last_at=draw(AT),
        is_binary=draw(st.booleans()),
    )


JOBS = st.lists(st.sampled_from(FILES), unique=True, max_size=3).flatmap(
    lambda names: st.tuples(*(reports(name) for name in names))
)
ALLOCATIONS = st.builds(
    Allocation,
    nodes=st.lists(st.sampled_from(("n1", "n2", "10.0.0.7", "n9")), unique=True).map(tuple),
    tasks_per_node=st.integers(0, 8),
    ranks_are_tasks=st.booleans(),
)


@settings(max_examples=60)
@given(JOBS, ALLOCATIONS)
def test_any_files_make_one_report_whatever_their_order(
    files: tuple[FileReport, ...], allocation: Allocation
) -> None:
    report = examine(files, allocation)
    assert examine(files, allocation) == report
    assert examine(files[::-1], allocation) == report
    assert 0 <= report.confidence <= 1
    assert report.sentence
    assert report.why
    if report.root is not None:
        assert report.root.file in {one.file for one in files}
    if allocation.nodes:
        assert set(report.exclude) <= set(allocation.nodes), "only nodes of the job are left out"
    if report.decision is not Decision.RESTART_EXCLUDING_NODE:
        assert not report.exclude
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report).sentence


@settings(max_examples=25)
@given(JOBS, ALLOCATIONS)
def test_a_run_is_stopped_only_for_a_cause_that_a_line_tells(
    files: tuple[FileReport, ...], allocation: Allocation
) -> None:
    """What is not known, what only symptoms show, and what went well are tried again or left."""
    report = examine(files, allocation)
    if report.decision is not Decision.STOP:
        return
    assert report.kind is not Happened.NONE
    assert report.root is not None or any(one.findings for one in files)
    told = {one.role for file in files for one in file.findings}
    again = "no step was gained" in report.why
    assert again or told & {Role.ROOT, Role.EITHER, Role.SYMPTOM}
    assert report.cause not in ("unknown-failure", "silent-hang", "empty-log")


@settings(max_examples=25)
@given(JOBS, ALLOCATIONS)
def test_nobody_is_stopped_or_left_out_where_nothing_was_found(
    files: tuple[FileReport, ...], allocation: Allocation
) -> None:
    empty = tuple(msgspec.structs.replace(one, findings=()) for one in files)
    report = examine(empty, allocation)
    assert report.decision in (Decision.NONE, Decision.RESTART)
    assert not report.exclude
    assert not report.nodes


@pytest.mark.parametrize("files", [(), (FileReport(file="a.log"),)], ids=["none", "empty"])
def test_no_log_is_not_a_healthy_one(files: tuple[FileReport, ...]) -> None:
    report = examine(files, Allocation())
    assert report.cause == "empty-log"
    assert report.confidence < 0.1
    assert report.decision is Decision.NONE
