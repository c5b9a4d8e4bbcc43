"""Every kind of failure that operators of training clusters name, and the rules that hear it.

The rows are grouped as they are looked for: collectives, InfiniBand, GPUs, Xid codes,
processes, programs, launch, storage, Slurm, containers, slowness. What shows in a state of the
scheduler or in silence instead of a line is listed with that reason.
"""

from __future__ import annotations

import pytest

from relight.model.findings import Domain, Remedy, Role
from relight.rules.loading import load
from relight.rules.patterns import CompiledRule

RULES = {rule.id: rule for rule in load()}
COMPILED = {name: CompiledRule(rule) for name, rule in RULES.items()}

COLLECTIVES = {
    "N1 watchdog time-out of a collective": "nccl-watchdog-timeout",
    "N2 watchdog tells how far a rank came": "nccl-watchdog-status",
    "N3 watchdog itself stuck": "nccl-heartbeat-stuck",
    "N4 the process is taken down": "nccl-taking-process-down process-abort-signal",
    "N5 remote process exited": "nccl-remote-error",
    "N6 system error": "nccl-system-error",
    "N7 internal error": "nccl-system-error",
    "N8 unhandled CUDA error": "nccl-cuda-failure",
    "N9 invalid usage, two ranks on one GPU": "nccl-invalid-usage nccl-usage-rejected",
    "N10 no memory at initialisation": "cuda-out-of-memory",
    "N11 completion with error": "nccl-ib-completion-error ib-flush-error",
    "N12 fatal event of an adapter": "ib-port-error ib-local-access-violation",
    "N13 event that is not fatal": "ib-port-event ib-harmless-event",
    "N14 queue pair cannot be set up": "ib-queue-pair-setup-failed",
    "N15 memory cannot be registered": "ib-memory-registration-failed",
    "N16 adapter cannot be opened": "ib-device-unusable ib-port-error",
    "N17 connection closed or refused": "nccl-remote-error nccl-connect-failed",
    "N18 libfabric request failed": "nccl-ofi-error nccl-ofi-setup-failed",
    "N19 no interface": "nccl-no-interface",
    "N20 NVLink multicast": "nccl-nvls-bind-failed",
    "N21 ranks call different collectives": "collective-mismatch collective-sizes-differ",
    "N23 Gloo, UCX and MPI lose a peer": "gloo-connection-closed gloo-timed-out mpi-aborted",
}
INFINIBAND = {
    "status 4, 9, 10": "ib-protection-error",
    "status 5": "ib-flush-error",
    "status 11, 12, 13": "nccl-ib-completion-error",
    "status 19, 21": "ib-adapter-fatal-status",
    "kernel: link down, cable": "adapter-link-down",
    "kernel: health, firmware, power": "adapter-broken adapter-underpowered",
    "kernel: transmit time-out": "adapter-transmit-timeout",
}
GPUS = {
    "C1 uncorrectable memory error": "gpu-ecc-uncorrectable",
    "C2 illegal memory access": "cuda-illegal-memory-access",
    "C3 device-side assertion": "cuda-device-assert",
    "C4 unspecified launch failure": "cuda-launch-failure",
    "C5 out of memory, own or others'": "cuda-out-of-memory gpu-memory-held-by-others",
    "C6 bad address or instruction": "cuda-bad-instruction",
    "C7 launch timed out": "cuda-launch-failure",
    "C8 NVLink": "gpu-peer-access-fault gpu-nvlink-error",
    "C9 fabric not ready, driver mismatch": "gpu-fabric-not-ready gpu-driver-mismatch",
    "C10 no device, wrong ordinal, busy, unknown": (
        "gpu-not-visible gpu-ordinal-invalid gpu-unavailable cuda-environment-broken"
    ),
    "C11 GPU is lost": "gpu-fallen-off-bus",
    "C12 cuBLAS, cuDNN": "cuda-library-error",
    "C13 driver too old, no kernel image": "gpu-driver-too-old gpu-kernel-image-missing",
    "C14 advice text": "gpu-advice-text",
    "C15 ROCm": "cuda-illegal-memory-access gpu-hang-rocm gpu-hw-exception-hsa",
    "C16 compilers": "compiler-failed compiler-backend-failed",
    "SXid of a switch": "gpu-nvlink-error xid-information",
    "GPU count too low, link lost": "gpu-fallen-off-bus kernel-pcie-fatal",
}
PROCESSES = {
    "P1 the kernel kills for memory": "host-oom-kill oom-killer-invoked",
    "P2 Slurm counts kills for memory": "host-oom-kill slurm-state-out-of-memory",
    "P3 SIGKILL alone": "process-killed",
    "P4 SIGBUS": "bus-error",
    "P5 shared memory": "shared-memory-exhausted",
    "P6 data-loader worker died": "dataloader-worker-lost",
    "P7 data loader timed out": "dataloader-timeout",
    "P8 segmentation fault": "segfault",
    "P9 illegal instruction, damaged heap": "illegal-instruction process-aborted",
    "P10 SIGTERM": "sigterm-received sigterm-exception",
    "P11 interrupted": "keyboard-interrupt sigint-received interrupted-by-user",
    "P12 machine check": "kernel-machine-check kernel-machine-check-logged kernel-corrected-error",
    "P13 lock-up, blocked task, panic": "kernel-lockup kernel-task-blocked kernel-panic",
    "P14 limits": "too-many-open-files thread-limit-reached",
    "torchelastic's box": "child-failed",
}
PROGRAMS = {
    "A1 modules and libraries": "module-not-found shared-library-missing binary-packages-unfit",
    "A2 mistakes in code": "python-syntax-error multiprocessing-misuse autograd-misuse",
    "A3 shapes and state dicts": "shape-mismatch tensor-kind-mismatch",
    "A4 arguments and settings": "usage-error configuration-invalid distributed-setup-invalid",
    "A5 missing files": "file-not-found data-not-found",
    "A6 permission": "permission-denied",
    "A7 not a number": "loss-nan loss-nan-abort loss-scale-exhausted result-rejected",
    "A7 silent damage": "silent-data-corruption gradients-inconsistent",
    "A9 data": "data-corrupt token-out-of-range",
    "A10 hubs": "hub-access-refused hub-request-failed http-request-failed",
    "A11 trackers": "tracker-login-missing tracker-unreachable metrics-service-trouble",
    "A12 checkpoint cannot be read": "checkpoint-corrupt checkpoint-empty-pickle",
    "A13 resumption that was none": "resume-from-scratch",
    "A14 checkpoint cannot be written": "checkpoint-write-failed disk-full disk-quota-exceeded",
    "A15 unsupported": "feature-unsupported compiler-backend-failed",
    "A16 ends of its own": "exit-limit-reached training-finished",
}
LAUNCH = {
    "L1 rendezvous": "rendezvous-failed",
    "L2 store not reached": "rendezvous-failed store-barrier-timed-out store-barrier-waiting",
    "L3 store lost": "store-connection-lost",
    "L4 address in use": "port-in-use",
    "L5 names": "hostname-resolution-failed",
    "L6 ssh": "ssh-launch-failed ssh-refused-by-setup ssh-exited",
    "L7 Ray": "worker-lost node-marked-dead ray-memory-monitor-kill",
    "L8 JAX": "jax-coordination-failed jax-registration-failed jax-process-terminated",
    "L9 keep-alive of an agent": "rendezvous-keep-alive-failed",
}
STORAGE = {
    "S1 stale handle": "stale-file-handle",
    "S2 no space": "disk-full local-disk-full",
    "S3 quota": "disk-quota-exceeded",
    "S4 input/output error": "filesystem-io-error local-disk-error kernel-disk-lost",
    "S5 read-only": "filesystem-read-only",
    "S6 Lustre": "lustre-client-evicted lustre-connection-lost lustre-request-failed",
    "S7 GPFS, BeeGFS, Weka, Ceph": "parallel-filesystem-client-lost",
    "S8 NFS": "nfs-server-not-responding kernel-task-blocked",
    "S9 FUSE": "fuse-mount-lost transport-endpoint-gone",
    "S10 object stores": "remote-storage-error remote-storage-refused",
    "S11 mount missing on one node": "file-not-found working-directory-missing mount-failed",
}
SLURM = {
    "J1 node failure": "slurm-node-failure",
    "J2 time limit": "slurm-time-limit",
    "J3 preempted": "slurm-preempted instance-reclaimed",
    "J4 out of memory": "host-oom-kill slurm-state-out-of-memory",
    "J5 cancelled": "slurm-cancelled",
    "J7 node did not boot": "slurm-node-unfit",
    "J9 launch failed": "slurm-launch-failed slurm-application-launch-failed",
    "J10 step cannot be created": (
        "slurm-nodes-busy slurm-step-creation-waits slurm-request-refused"
    ),
    "J11 prolog": "slurm-prolog-failed",
    "J13 unkillable": "slurm-kill-task-failed",
    "J14 node reasons": "slurm-node-unfit gpu-fallen-off-bus",
    "J15 tasks": "slurm-task-exited slurm-task-died slurm-task-terminated",
    "J16 requeue": "slurm-requeued requeued-by-itself",
    "J17 authentication, controller": "slurm-authentication-failed slurm-controller-unreachable",
    "J18 questions": "slurm-question-unanswered",
}
CONTAINERS = {
    "K1 import": "container-image-refused container-registry-unavailable",
    "K2 mounts and images": "container-mount-failed container-image-refused",
    "K3 start and GPU hook": "container-start-failed container-gpu-hook-failed",
    "K4 plugin wrapper": "container-wrapper-failed slurm-application-launch-failed",
    "K5 no space to unpack": "local-disk-full",
    "K6 Apptainer": "container-start-failed container-mount-failed container-image-pull-failed",
    "K7 Kubernetes": (
        "container-image-pull-failed pod-out-of-memory pod-evicted kubernetes-node-lost"
        " pod-admission-refused instance-reclaimed"
    ),
}
SLOWNESS = {
    "W1 clocks": "gpu-clocks-slowed kernel-overheated",
    "W2 a slow rank": "straggler-detected straggler-gpu-score straggler-named straggler-score-low",
    "W3 links": "pcie-link-slow xid-nvlink-nonfatal",
    "W4 data wait": "storage-slow",
}
CARRIED = {
    row: frozenset(rules.split())
    for group in (
        COLLECTIVES,
        INFINIBAND,
        GPUS,
        PROCESSES,
        PROGRAMS,
        LAUNCH,
        STORAGE,
        SLURM,
        CONTAINERS,
        SLOWNESS,
    )
    for row, rules in group.items()
}
WITHOUT_A_LINE = {
    "N22 silence, no dump": "nothing is printed: steps that stop are seen by time alone",
    "A8 loss spike": "a number in a progress line, judged against those before it",
    "A17 ended early without a word": "the last step against the total, beside the exit code",
    "J6 state FAILED": "the scheduler's state: the log tells the cause",
    "J8 state DEADLINE": "the scheduler's state",
    "J12 epilog error": "a node's reason: the job has ended by then",
    "J19 held states": "the scheduler's state: a hold belongs to who placed it",
    "J20 pending after an exclusion": "the scheduler's state, an effect of excluding",
    "J21 IMEX channels": "the scheduler's reason of a pending job",
    "W5 periodic slow step": "normal: learnt from the step times",
    "W6 growing step time": "seen in the step times alone",
}
ROWS_OF = {"N": 23, "C": 16, "P": 14, "A": 17, "L": 9, "S": 11, "J": 21, "K": 7, "W": 6}

XIDS = {
    "gpu-ecc-uncorrectable": (48, 64, 95, 171, 172),
    "gpu-ecc-contained": (94,),
    "gpu-fallen-off-bus": (79,),
    "gpu-nvlink-error": (74,),
    "gpu-gsp-timeout": (119, 120),
    "xid-gpu-reset-needed": (46, 62, 110, 136, 140, 143, 155, 156, 158),
    "xid-machine-needs-service": (54, 167, 168, 169),
    "xid-context-switch-timeout": (109,),
    "xid-system-software": (78, 151),
    "xid-application-fault": (11, 13, 25, 31, 32, 69, 80, 137),
    "xid-engine-fault": (8, 39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136)),
    "xid-aftermath": (37, 38, 43, 44, 45, 66, 67, 157, 160, 161),
    "xid-information": (
        *(63, 92, 93, 106, 107, 121, 141, 142, 159, 162, 163, 164, 165, 166, 170),
        *(60, 68, 82, 83, 84, 86, 88, 89, *range(96, 106), 139),
    ),
}
XID_SHAPES = (
    ("154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
     "xid-recovery-action"),
    ("154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
     "xid-information"),
    ("145, pid=7, name=python, RLW_CTRL Fatal XC0 i0 Link 12 (0x4 0x0)", "gpu-nvlink-error"),
    ("149, pid=7, name=python, NETIR_LINK_EVT Nonfatal XC0 i0 Link 3 (0x4 0x0)",
     "xid-nvlink-nonfatal"),
    ("45, pid=7, name=python, Ch 00000008, caused by previous Xid 79", "xid-follows-hardware"),
)  # fmt: skip


def accusing(line: str) -> set[str]:
    """Return the rules that hear the line."""
    return {name for name, rule in COMPILED.items() if rule.captures(line.encode()) is not None}


@pytest.mark.parametrize("row", CARRIED)
def test_each_kind_of_failure_is_carried_by_rules(row: str) -> None:
    assert CARRIED[row] <= RULES.keys()


@pytest.mark.parametrize("group", ROWS_OF)
def test_no_row_of_a_group_is_left_out(group: str) -> None:
    rows = {row.split()[0] for row in (*CARRIED, *WITHOUT_A_LINE)}
    assert {f"{group}{number}" for number in range(1, ROWS_OF[group] + 1)} <= rows


@pytest.mark.parametrize(
    ("code", "rule"), [(code, rule) for rule, codes in XIDS.items() for code in codes]
)
def test_each_xid_is_heard_by_the_rule_of_what_it_asks_for(code: int, rule: str) -> None:
    line = f"[ 77.1] NVRM: Xid (PCI:0000:b3:00): {code}, pid='<unknown>', name=<unknown>, text"
    assert accusing(line) == {rule}


@pytest.mark.parametrize(("text", "rule"), XID_SHAPES)
def test_an_xid_with_details_is_told_apart_by_them(text: str, rule: str) -> None:
    assert accusing(f"NVRM: Xid (PCI:0000:b3:00): {text}") == {rule}


def test_no_rule_that_reports_a_passing_trouble_of_shared_things_says_stop() -> None:
    shared = {Domain.NETWORK, Domain.SCHEDULER, Domain.HARDWARE, Domain.UNKNOWN}
    stopping = {
        rule.id for rule in RULES.values() if rule.domain in shared and rule.remedy is Remedy.STOP
    }
    assert stopping == set()


def test_what_stops_a_run_is_a_cause_and_never_a_symptom() -> None:
    asked = {
        rule.id
        for rule in RULES.values()
        if rule.role in (Role.SYMPTOM, Role.BENIGN)
        and Remedy.STOP in (rule.remedy, rule.reach.everywhere, rule.reach.at_start)
    }
    assert asked == set()
