"""What 'the same hang again' means: the same complaint, of the same cause."""

from __future__ import annotations

import msgspec

from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.jobs import Allocation
from relight.testing.stories import finding
from relight.testing.witnessed import told

NODES = Allocation(nodes=("node-01", "node-02", "node-03", "node-04"))
SILENCE = msgspec.structs.replace(
    finding(
        "no-progress",
        kind=Kind.HANG,
        role=Role.EITHER,
        domain=Domain.UNKNOWN,
        remedy=Remedy.RESTART,
        detector="silence",
    ),
    fingerprint="no-progress|phase=steps",
)
IDLE = told("gpu-idle-among-busy", Kind.HANG, nodes=("node-02",))
SPIN = told("gpus-spin", Kind.HANG, domain=Domain.UNKNOWN, remedy=Remedy.RESTART, role=Role.SYMPTOM)


def fingerprint(*found: Finding) -> str:
    return diagnose((SILENCE, *found), NODES, Ending()).fingerprint


def test_hangs_of_different_causes_have_different_fingerprints() -> None:
    told_by = [fingerprint(), fingerprint(IDLE), fingerprint(SPIN)]
    assert len(set(told_by)) == len(told_by)
    assert all(one.startswith(SILENCE.fingerprint) for one in told_by)


def test_the_same_hang_has_the_same_fingerprint_whichever_node_waited() -> None:
    other = msgspec.structs.replace(IDLE, nodes=("node-04",), id="other")
    assert fingerprint(IDLE) == fingerprint(other)
