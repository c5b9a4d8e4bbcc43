"""A machine with two names is one machine, and a collector is none of those that it speaks for."""

from __future__ import annotations

import msgspec
import pytest

from relight.diagnosis.naming import by_one_name
from relight.model.findings import Evidence, Finding
from relight.model.jobs import Allocation
from relight.testing.stories import finding


def line(text: str, *nodes: str, offset: int = 0) -> Finding:
    made = finding("rule", nodes=nodes, offset=offset)
    return msgspec.structs.replace(made, evidence=(Evidence(text=text, is_root=True),))


BY_ADDRESS = line("10.0.4.22: RuntimeError: Error 802", "10.0.4.22")
BY_HOST = line("10.0.4.22: h4:12:34 [0] NCCL WARN it failed", "h4", offset=1)
IN_SYSLOG = line("10.0.4.22: Jan 30 15:58:02 h4 nv-fabricmanager[1201]: does not match", "h4")
IN_BOX = line("10.0.4.22:   host      : h4", "h4", offset=2)
REPORTER = line("gpu-01: Node gpu-09 is dead", "gpu-09", offset=3)
OF_REPORTER = line("gpu-01: RuntimeError: lost", "gpu-01", offset=4)
COLLECTED = line("log-1: step failed", "log-1", offset=5)
COLLECTED_SRUN = line("log-1: srun: error: n3: task 4: Exited with exit code 1", "n3", offset=6)
SHIPPED = line("2025-03-01T10:00:00Z log-1: srun: error: n3: task 4: Exited with exit code 1", "n3")
BY_RAY = line("(Worker pid=7, ip=10.0.4.9) RuntimeError: it broke", "10.0.4.9", offset=9)
BY_RAY_HOST = line("(Worker pid=7, ip=10.0.4.9) ip-9:1:1 [0] NCCL WARN a", "ip-9", offset=10)
TWO_OF_ONE = (
    line("log-1: n1:1:1 [0] NCCL WARN a", "n1", offset=7),
    line("log-1: n2:1:1 [0] NCCL WARN a", "n2", offset=8),
)


@pytest.mark.parametrize(
    ("findings", "nodes", "named"),
    [
        ([BY_ADDRESS, BY_HOST], (), ["10.0.4.22", "10.0.4.22"]),
        ([BY_ADDRESS, IN_SYSLOG], (), ["10.0.4.22", "10.0.4.22"]),
        ([BY_ADDRESS, IN_BOX], (), ["10.0.4.22", "10.0.4.22"]),
        ([BY_ADDRESS, BY_HOST], ("h4", "h5"), ["h4", "h4"]),
        ([BY_HOST], (), ["h4"]),
        ([OF_REPORTER, REPORTER], (), ["gpu-01", "gpu-09"]),
        ([COLLECTED, COLLECTED_SRUN], (), ["", "n3"]),
        ([COLLECTED, SHIPPED], (), ["", "n3"]),
        ([COLLECTED, *TWO_OF_ONE], (), ["", "n1", "n2"]),
        ([line("", "a"), line("x: b:", "b")], (), ["a", "b"]),
        ([BY_RAY, BY_RAY_HOST], (), ["10.0.4.9", "10.0.4.9"]),
        ([COLLECTED, COLLECTED_SRUN, TWO_OF_ONE[0]], (), ["", "n3", "n1"]),
    ],
)
def test_each_machine_bears_one_name(
    findings: list[Finding], nodes: tuple[str, ...], named: list[str]
) -> None:
    renamed = by_one_name(findings, Allocation(nodes=nodes))
    assert [",".join(one.nodes) for one in renamed] == named
    assert [one.id for one in renamed] == [one.id for one in findings]
