"""The lines of collectives, networks and launchers: which rule hears them, and as what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relight.model.findings import Role
from relight.rules.loading import load
from relight.rules.patterns import CompiledRule
from relight.rules.schema import Rule

CORPUS = Path(__file__).parents[2] / "corpus" / "comms"
HEARD = tuple((rule, CompiledRule(rule)) for rule in load())
LABELS = tuple(json.loads(line) for line in (CORPUS / "labels.jsonl").read_text().splitlines())
FAMILIES_HERE = frozenset(
    {
        "collective_mismatch",
        "collective_missing_ranks",
        "gloo_connect_failed",
        "hostname_resolution_failed",
        "ib_port_error",
        "jax_coordination_failure",
        "nccl_collective_timeout",
        "nccl_ib_completion_error",
        "nccl_init_failed",
        "nccl_ofi_error",
        "nccl_remote_error",
        "nccl_socket_connect_failed",
        "port_in_use",
        "rank0_work_timeout",
        "rendezvous_failed",
        "ssh_launch_failed",
        "watchdog_heartbeat_stuck",
        "worker_process_lost",
    }
)
ROOTED = tuple(label for label in LABELS if label["family"] in FAMILIES_HERE)


def heard(line: bytes) -> list[tuple[Rule, dict[str, str]]]:
    captures = ((rule, compiled.captures(line)) for rule, compiled in HEARD)
    return [(rule, found) for rule, found in captures if found is not None]


def named(line: str) -> dict[str, dict[str, str]]:
    return {rule.id: found for rule, found in heard(line.encode())}


@pytest.mark.parametrize("label", ROOTED, ids=lambda label: label["id"])
def test_the_root_line_of_a_case_is_heard_as_its_family(label: dict[str, object]) -> None:
    lines = (CORPUS / "cases" / f"{label['id']}.log").read_bytes().split(b"\n")
    number = label["root_line"]
    assert isinstance(number, int)
    families = {rule.family for rule, _ in heard(lines[number - 1])}
    wanted = label["acceptable_family"]
    assert isinstance(wanted, list)
    assert families & set(wanted), families


@pytest.mark.parametrize(
    ("status", "rule"),
    [
        ("status=12 opcode=0 len=0 vendor err 129 (Send)", "nccl-ib-completion-error"),
        ("error 12, opcode 0, len 0, vendor err 129", "nccl-ib-completion-error"),
        ("status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)", "nccl-ib-completion-error"),
        ("status=13 opcode=0 len=0 vendor err 135", "nccl-ib-completion-error"),
        ("status=5 opcode=0 len=0 vendor err 249 (Recv)", "ib-flush-error"),
        ("status=IBV_WC_WR_FLUSH_ERR(5) opcode=IBV_WC_SEND(0)", "ib-flush-error"),
        ("status=4 opcode=0 len=0 vendor err 81", "ib-protection-error"),
        ("status=10 opcode=0 len=0 vendor err 136", "ib-protection-error"),
        ("status=19 opcode=0 len=0 vendor err 105", "ib-adapter-fatal-status"),
    ],
)
def test_a_completion_is_told_apart_by_its_status(status: str, rule: str) -> None:
    found = named(
        f"n1:1:2 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4> with {status}"
    )
    assert {name: captures.get("peer") for name, captures in found.items()} == {rule: "10.0.0.2"}


@pytest.mark.parametrize(
    ("line", "rule", "peer"),
    [
        ("NCCL WARN socketStartConnect: Connect to fe80::1%ib1<17943> failed : No route to host",
         "nccl-connect-failed", "fe80::1%ib1"),
        ("socketProgress: Connection closed by remote peer w-6.train.svc.cluster.local<52110>",
         "nccl-remote-error", "w-6.train.svc.cluster.local"),
        ("The client socket has timed out after 60s while trying to connect to (10.0.0.1, 1234).",
         "rendezvous-failed", "10.0.0.1"),
        ("The client socket has timed out after 60000ms while trying to connect to node-0:1234.",
         "rendezvous-failed", "node-0"),
        ("gaierror: Failed to resolve 'node-0' ([Errno -2] Name or service not known)",
         "hostname-resolution-failed", "node-0"),
    ],
)  # fmt: skip
def test_the_other_end_of_a_connection_is_named(line: str, rule: str, peer: str) -> None:
    assert named(line)[rule]["peer"] == peer


@pytest.mark.parametrize(
    "line",
    [
        "NCCL INFO socketPollConnect: connect to n1<3> returned No route to host, retrying (1/34)",
        "NCCL INFO Call to ibv_modify_qp failed with 110 Connection timed out, retrying 1/2",
        "[W socket.cpp:426] [c10d] failed to bind to [::]:9 (errno: 98 - Address already in use).",
        "failed to connect, willRetry=1, error=SO_ERROR: Connection refused, remote=[::1]:5",
        "wandb: WARNING Failed to resolve 'api.wandb.ai' (Temporary failure in name resolution)",
        "NCCL WARN NET/IB : mlx5_3:1 Got non-fatal async event: client reregistration(17)",
        "n5:1:2 [0] misc/ibvwrap.cc:212 NCCL WARN Call to ibv_open_device failed",
    ],
)
def test_what_is_tried_again_or_harmless_tells_of_no_fault(line: str) -> None:
    assert {rule.id for rule, _ in heard(line.encode()) if rule.role is not Role.BENIGN} == set()
