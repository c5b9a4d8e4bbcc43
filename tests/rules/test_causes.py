"""Every name that a detector gives to a finding can be looked up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import relight
from relight.diagnosis import witnesses
from relight.perception import nodes
from relight.perception.flights import accusing
from relight.rules.causes import load_causes
from relight.rules.families import FAMILIES
from relight.rules.loading import load

KNOWN = {one.id: one for one in load_causes()}
ROOMS = ("nodes.py", "telemetry/*.py", "flights/*.py", "rhythm/*.py")
GIVEN = re.compile(
    r'(?:rule=|_hardware\(|^[A-Z_]+ = |^        \()"([a-z]+(?:-[a-z]+)+)"', re.MULTILINE
)


def test_each_cause_is_told_once_and_whole() -> None:
    assert len(KNOWN) == len(load_causes())
    for cause in KNOWN.values():
        assert all((cause.title, cause.told_by, cause.means, cause.done, cause.source)), cause.id
        assert cause.family in FAMILIES | {"unknown"}


@pytest.mark.parametrize(
    "names",
    [
        witnesses.PATTERNS,
        witnesses.RECORDS,
        witnesses.STRAGGLERS,
        witnesses.LINKS,
        witnesses.NUMBERS,
        {witnesses.SILENCE, witnesses.SLOWDOWN, accusing.NO_DUMP, "node-failure", "silent-hang"},
    ],
)
def test_what_a_verdict_can_name_is_there(names: frozenset[str]) -> None:
    assert names <= KNOWN.keys()


def test_what_detectors_name_in_their_code_is_there() -> None:
    folder = Path(nodes.__file__).parent
    text = "".join(path.read_text() for room in ROOMS for path in folder.glob(room))
    named = set(GIVEN.findall(text))
    assert {"node-drained", "gpu-xid", "nvlink-errors", "gpu-hot", "loss-spike"} <= named
    assert named <= KNOWN.keys() | {rule.id for rule in load()}
    assert Path(relight.__file__).parent in folder.parents
