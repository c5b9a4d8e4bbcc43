"""The lines of other accelerators, launchers and platforms: which rule hears them, and as what."""

from __future__ import annotations

import pytest

from relight.model.findings import End, Role
from relight.rules.loading import load
from relight.rules.patterns import CompiledRule

RULES = {rule.id: rule for rule in load()}
COMPILED = {name: CompiledRule(rule) for name, rule in RULES.items()}

HEARD = [
    # Ascend
    ("hccl-failed", "RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/x.cpp:64"),
    (
        "hccl-failed",
        "[ERROR] 2025-01-02-03:04:05 (PID:1, Device:0, RankID:5) ERR00100 PTA call acl api failed",
    ),
    ("hccl-failed", "EE9999: Inner Error!"),
    (
        "gpu-unavailable",
        "EJ0001: [PID: 77] 2025-01-02-03:04:05.123.456 Failed to initialize the HCCP process.",
    ),
    (
        "npu-stream-timed-out",
        "EE1002: [PID: 7] 2025-01-02-03:04:05.123.456 Stream synchronize timeout.",
    ),
    ("npu-kernel-fault", "RuntimeError: ACL stream synchronize failed, error code:507034"),
    ("npu-kernel-fault", "The error from device 3, there is an aicore exception, core id is 8"),
    (
        "hccl-setup-invalid",
        "EI0008: 2025-01-02-03:04:05.1 The HCCL versions are inconsistent: tag x",
    ),
    ("cuda-out-of-memory", "EL0004: [PID: 7] 2025-01-02-03:04:05.1 Failed to allocate memory."),
    # Gaudi, Neuron, Intel
    ("hpu-device-fault", "kernel: habanalabs 0000:19:00.0: device is NOT usable"),
    ("hpu-device-fault", "kernel: habanalabs hl7: Failed to reset device, try again later"),
    ("neuron-runtime-failed", "ERROR NRT:nrt_execute status=NRT_TIMEOUT on nd3"),
    (
        "gpu-unavailable",
        "ERROR NRT:nrt_allocate Logical Neuron Core(s) not available - Requested:8-8",
    ),
    ("cuda-out-of-memory", "RuntimeError: level_zero: ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"),
    # Paddle, MXNet, TensorFlow, Horovod
    (
        "child-failed",
        "Container rank 11 status failed cmd ['python', 't.py'] code 250 log log/w.11",
    ),
    ("segfault", "Container rank 1 status failed cmd ['python', 't.py'] code -11 log log/w.1"),
    ("port-in-use", "[10:00:00] src/van.cc:304: Check failed: (port) != (-1) bind failed"),
    (
        "tensorflow-collective-timed-out",
        "E base_collective_executor.cc:1] StartAbort DEADLINE_EXCEEDED: Deadline",
    ),
    (
        "tensorflow-collective-aborted",
        "W x] BaseCollectiveExecutor::StartAbort UNAVAILABLE: Socket closed",
    ),
    # Ray and its engines
    (
        "node-marked-dead",
        "The node with node ID 0f1e2d3c4b has been marked dead because the detector",
    ),
    (
        "ray-task-failed",
        "ray.exceptions.RayTaskError(RuntimeError): ray::W.step() (pid=7, ip=10.0.0.9)",
    ),
    (
        "engine-core-dead",
        "ERROR 03-04 10:00:00 [core.py:400] EngineCore hit an exception: Traceback",
    ),
    ("exception-reported", "ERROR 03-04 10:00:00 core.py:400] AttributeError: no attribute 'x'"),
    # batch systems and platforms
    ("host-oom-kill", "=>> PBS: job killed: vmem 5199776kb exceeded limit 4194304kb"),
    ("host-oom-kill", 'job 9.1 exceeds job hard limit "h_rss" of queue "q@n1" (2 > limit:1)'),
    ("host-oom-kill", "slurmstepd: error: Step 7.0 exceeded memory limit (9 > 8), being killed"),
    ("platform-agent-lost", "ERROR: allocation failed due to agent failure: agent closed"),
    ("platform-agent-lost", "    Can not reconnect to slot1@node7.cluster, rescheduling job"),
    ("platform-failed", "InternalServerError: We encountered an internal error. Please try again."),
    ("child-failed", "User process '/bin/bash' exited with status code 1"),
    ("worker-lost", "distributed.scheduler.KilledWorker: Attempted to run task on 3 workers"),
    (
        "slurm-node-silent",
        "srun: error: slurm_receive_msgs: [[n7]:6818] failed: Socket timed out on x",
    ),
    (
        "fuse-mount-lost",
        "NotFoundError: /mnt/gcs/train.tfrecord; Transport endpoint is not connected",
    ),
]
ENDINGS = [
    ("Job deleted at request of alice@head", End.CANCELLED),
    ("TERM_FORCE_OWNER: job killed by owner without time for cleanup.", End.CANCELLED),
    ("1.2s: job.exception type=cancel severity=0 ", End.CANCELLED),
    ("## OAR [2025-01-02 03:04:05] Job 77 KILLED ##", End.CANCELLED),
    ('job 9.1 exceeds job hard limit "h_rt" of queue "q@n1" (9 > limit:8)', End.TIMEOUT),
    ("Training stopped due to wall clock limit", End.TIMEOUT),
    ("PreemptionError: node went away", End.PREEMPTED),
    ("the spot nodes have been pre-empted", End.PREEMPTED),
    ("DEEPMD RANK:0  INFO    finished training", End.FINISHED),
    ("saved weights to /out/run7/final", End.FINISHED),
    ("2025-01-02 INFO: Training completed in 3:12:09", End.FINISHED),
]


def heard(line: str) -> dict[str, dict[str, str]]:
    found = ((name, rule.captures(line.encode())) for name, rule in COMPILED.items())
    return {name: captures for name, captures in found if captures is not None}


@pytest.mark.parametrize(("rule", "line"), HEARD)
def test_a_line_is_heard_by_its_rule(rule: str, line: str) -> None:
    assert rule in heard(line)


@pytest.mark.parametrize(("line", "ending"), ENDINGS)
def test_a_line_that_ends_a_run_says_how(line: str, ending: End) -> None:
    assert {RULES[name].ending for name in heard(line)} == {ending}


@pytest.mark.parametrize(
    ("line", "rule", "captured"),
    [
        (
            "[1,0]<stderr>:6: [horovod_allreduce.0, horovod_allreduce.1 ...]",
            "collective-missing-ranks",
            {"rank": "6"},
        ),
        (
            "3: [globals/more_data/HorovodAllreduce_globals_more_data_0]",
            "collective-missing-ranks",
            {"rank": "3"},
        ),
        ("Stalled ranks:0, 2", "collective-missing-ranks", {"rank": "0, 2"}),
        (
            "Container rank 4 status failed cmd ['python'] code -9 log log/workerlog.4",
            "process-killed",
            {"rank": "4"},
        ),
        (
            "=>> PBS: job killed: node 3 (gpu-4) requested job terminate, 'EOF' (code 1099)",
            "platform-agent-lost",
            {"node": "gpu-4"},
        ),
    ],
)
def test_rank_and_node_of_a_line_are_captured(
    line: str, rule: str, captured: dict[str, str]
) -> None:
    assert heard(line)[rule].items() >= captured.items()


@pytest.mark.parametrize(
    "line",
    [
        "Checkpoint file ./exp/model.pt.ep1 not found.",
        "W NPUStream.cpp:409] Warning: NPU warning, error code is 507046[Error]:",
        "BaseCollectiveExecutor::StartAbort OUT_OF_RANGE: End of sequence",
        "saved model to /out/epoch_3.keras",
        "the asyncio task was cancelled",
        "agent connected with 0 containers",
        "HCCL_CONNECT_TIMEOUT=1800",
    ],
)
def test_a_note_is_not_heard_as_a_failure(line: str) -> None:
    assert [name for name in heard(line) if RULES[name].role is not Role.BENIGN] == []


def test_a_broken_adapter_is_at_fault_however_many_ranks_tell_of_it() -> None:
    rules = heard("NCCL WARN NET/IB : Got async event : local catastrophic error")
    assert set(rules) == {"ib-adapter-catastrophic"}
    assert RULES["ib-adapter-catastrophic"].reach.everywhere is None
