"""Recordings of real releases turned into facts, and what is no recording at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.clients.slurm.facts import job_fact, node_fact
from relight.clients.slurm.listings import Line, ListingError, parse
from relight.clients.slurm.raw import RawJob, decode_jobs, decode_nodes
from relight.clients.slurm.states import holder, job_state, node_state
from relight.model.instants import from_unix
from relight.model.jobs import ENDED, Holder, JobFact, JobState, NodeState, OutputPaths

RECORDINGS = Path(__file__).parent.parent / "slurm_recordings"
RELEASES = ("22.05", "24.11")
ALL_NODES = ("node-01", "node-02", "node-03", "node-04")


def facts(release: str, name: str) -> list[JobFact]:
    records, broken = decode_jobs((RECORDINGS / release / f"{name}.json").read_bytes())
    assert not broken
    return [job_fact("main", record) for record in records]


EXPECTED: dict[str, dict[str, Any]] = {
    "pending": {
        "state": JobState.PENDING,
        "name": 'a "name" State=FAILED',
        "user": "nobody",
        "uid": 65534,
        "comment": '{"relight": {}}',
        "note": 'the site\'s "own" text ExcNodeList=node-04',
        "excluded_nodes": ("node-01",),
        "nodes": (),
        "expected_nodes": 2,
        "tasks": 16,
        "tasks_per_node": 8,
        "gpus_per_node": 8,
        "time_limit_seconds": 5400,
        "started_at": None,
        "ended_at": None,
        "exit_status": None,
    },
    "running": {
        "state": JobState.RUNNING,
        "nodes": ALL_NODES[:3],
        "tasks": 6,
        "tasks_per_node": 2,
        "gpus_per_node": 2,
        "reason": "",
        "requeue_allowed": True,
        "is_batch": True,
        "ended_at": None,
        "exit_status": None,
    },
    "completing": {"state": JobState.COMPLETING, "restart_count": 1, "exit_status": None},
    "requeued": {
        "state": JobState.PENDING,
        "restart_count": 1,
        "reason": "BeginTime",
        "nodes": (),
        "started_at": None,
    },
    "completed": {
        "state": JobState.COMPLETED,
        "exit_status": 0,
        "exit_signal": None,
        "time_limit_seconds": None,
    },
    "failed": {"state": JobState.FAILED, "exit_status": 3, "exit_signal": None},
    "signalled": {"state": JobState.FAILED, "exit_status": None, "exit_signal": 11},
    "cancelled": {"state": JobState.CANCELLED},
    "timeout": {"state": JobState.TIMEOUT, "reason": "TimeLimit", "time_limit_seconds": 60},
    "preempted": {"state": JobState.PREEMPTED, "nodes": ALL_NODES},
    "node_fail": {
        "state": JobState.NODE_FAIL,
        "reason": "NodeDown",
        "requeue_allowed": False,
        "nodes": ("node-02",),
    },
    "held_by_user": {"state": JobState.HELD, "held_by": Holder.USER, "reason": "JobHeldUser"},
    "held_by_admin": {"state": JobState.HELD, "held_by": Holder.ADMIN, "reason": "JobHeldAdmin"},
    "launch_failed": {
        "state": JobState.HELD,
        "held_by": Holder.LAUNCH_FAILURE,
        "restart_count": 1,
        "reason": "launch failed requeued held",
    },
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_recording_becomes_the_same_fact_in_every_release(release: str, name: str) -> None:
    (fact,) = facts(release, name)
    assert {key: getattr(fact, key) for key in EXPECTED[name]} == EXPECTED[name]
    assert fact.cluster == "main"
    assert fact.partition == "main"
    assert fact.submitted_at is not None
    assert (fact.ended_at is not None) == (fact.state in ENDED)


@pytest.mark.parametrize("release", RELEASES)
def test_array_tasks_and_parts_of_het_jobs_have_ids_of_their_own(release: str) -> None:
    array = facts(release, "array")
    first = array[0].array_job
    named = {(fact.scheduler_id, fact.array_job, fact.array_task) for fact in array}
    assert named == {(f"{first}_0", first, "0"), (f"{first}_1", first, "1"), (first, first, "")}
    het = facts(release, "het")
    leader = het[0].het_job
    assert [fact.scheduler_id for fact in het] == [f"{leader}+0", f"{leader}+1"]
    assert [len(fact.nodes) for fact in het] == [1, 2]


@pytest.mark.parametrize("release", RELEASES)
def test_a_task_of_a_waiting_array_is_named_and_has_a_path_of_its_own(release: str) -> None:
    records, _ = decode_jobs((RECORDINGS / release / "array.json").read_bytes())
    (waiting,) = [record for record in records if record.array_task_string]
    fact = job_fact("main", waiting, f"{waiting.id}_3")
    assert (fact.scheduler_id, fact.array_task) == (f"{waiting.id}_3", "3")
    assert fact.state is JobState.PENDING
    assert fact.output.stdout in {
        "slurm-%A_%a.out",
        f"/home/user/jobs/slurm-{waiting.id}_3.out",
    }


@pytest.mark.parametrize("release", RELEASES)
def test_a_chain_shows_its_dependencies(release: str) -> None:
    first, second, third = facts(release, "chain")
    assert second.dependencies == f"afterany:{first.scheduler_id}(unfulfilled)"
    assert third.dependencies == "singleton(unfulfilled)"


OUTPUTS = {
    ("22.05", "running"): OutputPaths(stdout="slurm-%j.out", work_dir="/home/user/jobs"),
    ("22.05", "failed"): OutputPaths(
        stdout="/home/user/jobs/o-%x", stderr="/home/user/jobs/e-%j", work_dir="/home/user/jobs"
    ),
    ("24.11", "failed"): OutputPaths(
        stdout="/home/user/jobs/o-failed",
        stderr="/home/user/jobs/e-{id}",
        work_dir="/home/user/jobs",
        expanded=True,
    ),
    ("24.11", "completed"): OutputPaths(
        stdout="/home/user/jobs/out-{id}.log", work_dir="/home/user/jobs", expanded=True
    ),
}


@pytest.mark.parametrize(("release", "name"), OUTPUTS)
def test_output_paths_are_patterns_or_expanded(release: str, name: str) -> None:
    (fact,) = facts(release, name)
    expected = OUTPUTS[release, name]
    assert fact.output == msgspec.structs.replace(
        expected,
        stdout=expected.stdout.replace("{id}", fact.scheduler_id),
        stderr=expected.stderr.replace("{id}", fact.scheduler_id),
    )


def test_an_expanded_path_beside_the_pattern_is_taken() -> None:
    raw = RawJob(
        job_id=1,
        job_state=["RUNNING"],
        standard_output="/data/%j.out",
        stdout_expanded="/data/1.out",
        standard_error="",
    )
    assert job_fact("main", raw).output == OutputPaths(stdout="/data/1.out", expanded=True)


@pytest.mark.parametrize("release", RELEASES)
def test_nodes_become_facts(release: str) -> None:
    records, broken = decode_nodes((RECORDINGS / release / "nodes_failed.json").read_bytes())
    nodes = [node_fact("main", record) for record in records]
    assert not broken
    assert tuple(node.name for node in nodes) == ALL_NODES
    assert [(node.state, node.is_idle, node.reason) for node in nodes[1:]] == [
        (NodeState.DOWN, False, "test of a failure"),
        (NodeState.UP, True, ""),
        (NodeState.DRAINED, False, "bad disk"),
    ]
    down = nodes[1]
    assert (down.reason_by, down.is_drained, down.is_silent) == ("root", False, False)
    assert down.reason_at is not None
    assert {node.booted_at is None for node in nodes} == {False}
    assert {node.gpus for node in nodes} == {8}
    assert {frozenset(node.partitions) for node in nodes} == {frozenset({"main", "urgent"})}


@pytest.mark.parametrize("release", RELEASES)
def test_the_cheap_listing_is_read(release: str) -> None:
    lines = parse((RECORDINGS / release / "listing.txt").read_bytes())
    assert {"RUNNING", "PENDING", "FAILED", "COMPLETED", "CANCELLED"} <= {
        line.state for line in lines.values()
    }
    (running,) = facts(release, "running")
    assert lines[running.scheduler_id].rest[-1] == "node-[01-03]"
    (held,) = facts(release, "held_by_user")
    assert lines[held.scheduler_id].is_held
    array = facts(release, "array")[0].array_job
    assert {f"{array}_{task}" for task in range(4)} <= lines.keys()


@pytest.mark.parametrize(
    ("words", "is_held", "state"),
    [
        (["PENDING"], False, JobState.PENDING),
        (["PENDING"], True, JobState.HELD),
        (["PENDING", "REQUEUED"], False, JobState.PENDING),
        (["PENDING", "REQUEUE_HOLD"], False, JobState.HELD),
        (["PENDING", "SPECIAL_EXIT"], False, JobState.HELD),
        (["PENDING", "COMPLETING"], False, JobState.COMPLETING),
        (["COMPLETING"], False, JobState.COMPLETING),
        (["RUNNING", "CONFIGURING"], False, JobState.RUNNING),
        (["CONFIGURING"], False, JobState.RUNNING),
        (["SUSPENDED"], True, JobState.SUSPENDED),
        (["FAILED"], True, JobState.FAILED),
        (["OUT_OF_MEMORY"], False, JobState.OUT_OF_MEMORY),
        (["DEADLINE"], False, JobState.TIMEOUT),
        (["BOOT_FAIL"], False, JobState.BOOT_FAIL),
        (["CANCELLED", "REVOKED"], False, JobState.UNKNOWN),
        (["RUNNING", "A_WORD_OF_TOMORROW"], False, JobState.RUNNING),
        (["A_WORD_OF_TOMORROW"], False, JobState.UNKNOWN),
        ([], False, JobState.UNKNOWN),
    ],
)
def test_states_in_relights_words(words: list[str], *, is_held: bool, state: JobState) -> None:
    assert job_state(words, is_held=is_held) is state


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("JobHeldUser", Holder.USER),
        ("JobHeldAdmin", Holder.ADMIN),
        ("launch failed requeued held", Holder.LAUNCH_FAILURE),
        ("launch_failed_requeued_held", Holder.LAUNCH_FAILURE),
        ("JobHoldMaxRequeue", Holder.MAX_REQUEUE),
        ("Dependency", Holder.UNKNOWN),
        ("", Holder.UNKNOWN),
    ],
)
def test_a_hold_is_told_by_its_text(reason: str, expected: Holder) -> None:
    assert holder(reason) is expected


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (["idle"], NodeState.UP),
        (["mixed", "planned"], NodeState.UP),
        (["allocated", "completing"], NodeState.UP),
        (["idle", "drain"], NodeState.DRAINED),
        (["mixed", "drain"], NodeState.DRAINED),
        (["down", "drain", "not_responding"], NodeState.DOWN),
        (["idle", "not_responding"], NodeState.UNKNOWN),
        (["mixed", "drain", "invalid_reg"], NodeState.DRAINED),
        (["idle", "invalid_reg"], NodeState.DRAINED),
        (["unknown"], NodeState.UNKNOWN),
        (["a_word_of_tomorrow"], NodeState.UNKNOWN),
        ([], NodeState.UNKNOWN),
    ],
)
def test_node_states_in_relights_words(words: list[str], state: NodeState) -> None:
    assert node_state(words) is state


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (
            {"state": "mixed", "state_flags": ["DRAIN"], "reason": "x", "reason_changed_at": 99},
            {"is_drained": True, "reason_at": from_unix(99)},
        ),
        (
            {"state": ["IDLE", "NOT_RESPONDING"], "boot_time": {"set": True, "number": 9}},
            {"is_silent": True, "booted_at": from_unix(9)},
        ),
        (
            {"state": ["IDLE", "NOT_RESPONDING"], "boot_time": {"set": True, "number": 0}},
            {"is_silent": False, "booted_at": None},
        ),
        ({"state": ["IDLE", "REBOOT_ISSUED"]}, {"is_rebooting": True}),
        ({"state": ["IDLE", "REBOOT_REQUESTED"]}, {"is_rebooting": False}),
        (
            {
                "state": ["IDLE"],
                "reason": "gres/gpu count reported lower than configured (7 < 8)",
                "gres": "gpu:8",
            },
            {"gpus": 8, "gpus_found": 7},
        ),
        (
            {"state": ["IDLE"], "reason": "", "reason_set_by_user": "eve", "reason_changed_at": 9},
            {"reason_by": "", "reason_at": None},
        ),
        ({"state": ["IDLE"], "boot_time": 10**12}, {"booted_at": None}),
        ({"state": ["IDLE"], "boot_time": 0xFFFFFFFE}, {"booted_at": None}),
    ],
)
def test_what_is_said_of_a_node_beside_its_state(
    record: dict[str, object], expected: dict[str, object]
) -> None:
    output = msgspec.json.encode({"nodes": [{"name": "n1", **record}]})
    ((raw_node,), broken) = decode_nodes(output)
    fact = node_fact("main", raw_node)
    assert broken == 0
    assert {name: getattr(fact, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("fields", "gpus"),
    [
        ({"tres_per_node": "gres:gpu:2"}, 2),
        ({"tres_per_node": "gres/gpu:a100:4"}, 4),
        ({"tres_per_node": "gpu"}, 1),
        ({"tres_per_node": "gres:gpu:a100:2,gres:gpu:h100:2"}, 4),
        ({"tres_per_job": "gres/gpu:16"}, 8),
        ({"tres_per_job": "gres/gpu:15"}, 0),
        ({"tres_per_task": "gres/gpu:1"}, 4),
        ({"tres_per_task": "gres/gpu=1"}, 4),
        ({"tres_alloc_str": "cpu=8,mem=4G,node=2,gres/gpu=16,gres/gpu:a100=16"}, 8),
        ({"tres_per_node": "gres:gpuless:2"}, 0),
        ({"tres_per_node": "gres:nic:2"}, 0),
        ({}, 0),
    ],
)
def test_gpus_per_node_by_whichever_way_they_were_asked_for(
    fields: dict[str, str], gpus: int
) -> None:
    raw = RawJob(job_id=1, job_state="RUNNING", tasks=8, node_count=2)
    for key, value in fields.items():
        setattr(raw, key, value)
    assert job_fact("main", raw).gpus_per_node == gpus


def test_unset_and_infinite_numbers_are_none_in_both_shapes() -> None:
    unset = {"set": False, "infinite": False, "number": 0}
    infinite = {"set": False, "infinite": True, "number": 0}
    for number in (None, 4294967295, 4294967294, unset, infinite):
        text = json.dumps({"jobs": [{"job_id": 1, "job_state": "PENDING", "time_limit": number}]})
        (record,), _ = decode_jobs(text.encode())
        assert job_fact("main", record).time_limit_seconds is None


def test_times_are_exact_instants() -> None:
    raw = RawJob(job_id=1, job_state="RUNNING", submit_time=1795970579, start_time=0)
    fact = job_fact("main", raw)
    assert (fact.submitted_at, fact.started_at) == (from_unix(1795970579), None)


def test_a_broken_record_loses_no_other_one() -> None:
    text = b'{"jobs": [{"job_id": 1, "job_state": 7}, {"job_id": 2, "job_state": "RUNNING"}, 3]}'
    (record,), broken = decode_jobs(text)
    assert (record.id, broken) == ("2", 2)


def test_a_name_that_is_no_utf_8_loses_nothing() -> None:
    text = b'{"jobs": [{"job_id": 1, "job_state": "RUNNING", "name": "a\xff\xfe"}]}'
    (record,), broken = decode_jobs(text)
    assert (record.name, broken) == ("a\ufffd\ufffd", 0)


def test_numbers_that_are_no_json_lose_nothing() -> None:
    text = b'{"jobs": [{"job_id": 1, "job_state": "RUNNING", "x": NaN, "tasks": -Infinity}]}'
    (record,), broken = decode_jobs(text)
    assert (job_fact("main", record).tasks, broken) == (0, 0)


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b'{"jobs": NaN',
        b'{"jobs": [Infinity',
        b"null",
        b"[]",
        b"{}",
        b'{"jobs": null}',
        b'{"jobs": {}}',
        b'{"jobs": [',
        b"[" * 100_000,
        b"[" * 100_000 + b"NaN",
    ],
)
def test_what_is_no_answer_is_refused(output: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_jobs(output)
    with pytest.raises(msgspec.DecodeError):
        decode_nodes(output)


@given(st.binary(max_size=400))
def test_garbage_is_refused_and_never_crashes(output: bytes) -> None:
    for read in (decode_jobs, decode_nodes):
        with pytest.raises(msgspec.DecodeError):
            read(output)
    try:
        lines = parse(output)
    except ListingError:
        return
    assert all(isinstance(line, Line) for line in lines.values())


@given(
    st.fixed_dictionaries(
        {"job_id": st.integers(0, 2**64), "job_state": st.text(max_size=10)},
        optional={
            key: st.one_of(
                st.none(), st.integers(-(2**63), 2**64), st.floats(allow_nan=False), st.text()
            )
            for key in RawJob.__struct_fields__[2:]
        },
    )
)
def test_any_record_becomes_a_fact_or_is_refused_by_name(record: dict[str, Any]) -> None:
    read, broken = decode_jobs(json.dumps({"jobs": [record]}).encode())
    assert len(read) + broken == 1
    for raw in read:
        try:
            assert job_fact("main", raw).cluster == "main"
        except (ValueError, OverflowError):
            continue


@pytest.mark.parametrize(
    "line",
    [b"slurm_load_jobs error", b"12", b"12;rm", b"\xff" * 500, b"x" * 10_000_000],
    ids=["words", "an id alone", "no id", "bytes", "ten million bytes"],
)
def test_a_line_that_cannot_be_read_makes_the_listing_no_answer(line: bytes) -> None:
    with pytest.raises(ListingError):
        parse(line + b"\n")
