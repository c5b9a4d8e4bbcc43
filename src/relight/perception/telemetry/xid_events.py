"""Xids that happened inside the window: read by change, for the common gauge holds the last one.

A value that stood there at the first sample is history, as is one that comes back after the
exporter started anew at 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from relight.model.findings import Finding
from relight.model.instants import Instant
from relight.model.telemetry import Sample
from relight.perception.telemetry.rises import rise_of
from relight.perception.telemetry.scenes import Part, Scene
from relight.perception.telemetry.sharing import of_nodes
from relight.perception.telemetry.wanted import LAST_XID, XIDS_COUNTED
from relight.perception.telemetry.xids import HIGHEST, title_of, trouble_of

_PCI_DIGITS = 4
"""Hexadecimal digits of a PCI domain in a kernel line; DCGM writes eight."""


def xids(scene: Scene) -> list[Finding]:
    """Return a finding for each node and code that came up inside the window."""
    codes: dict[int, dict[Part, tuple[str, Instant]]] = {}
    for part, code, words, at in (*_by_change(scene), *_by_count(scene)):
        signs = codes.setdefault(code, {})
        if part not in signs or at < signs[part][1]:
            signs[part] = (words, at)
    found: list[Finding] = []
    for code, signs in sorted(codes.items()):
        trouble = trouble_of(code)
        if trouble is None:
            continue
        title = title_of(code)
        says = f"reported Xid {code}" + (f" ({title})" if title else "")
        found += of_nodes(scene, trouble, says, signs, mark=f"code={code}", also=_addresses(scene))
    return found


def _by_change(scene: Scene) -> Iterator[tuple[Part, int, str, Instant]]:
    for part, samples in scene.of(LAST_XID).items():
        last = _code(samples[0].value)
        for was, now in pairwise(samples):
            code = _code(now.value)
            if code and code != last:
                words = f"{LAST_XID.name} went from {_code(was.value)} to {code}"
                yield part, code, words, now.at
            last = code or last


def _by_count(scene: Scene) -> Iterator[tuple[Part, int, str, Instant]]:
    for name, parts in scene.by_name.items():
        metric, _, text = name.partition(" ")
        if metric not in XIDS_COUNTED.names or not text.isdecimal():
            continue
        code = _code(float(text))
        for part, samples in parts.items():
            at = _counted(scene, part, samples)
            if code and at is not None:
                yield part, code, f"{metric} of {code} rose", at


def _counted(scene: Scene, part: Part, samples: Sequence[Sample]) -> Instant | None:
    """Return when a count rose; a series that first appears later than others of its GPU rose."""
    others = [
        parts[part][0].at
        for name, parts in scene.by_name.items()
        if part in parts and " " not in name
    ]
    appeared = bool(others) and samples[0].at > min(others) + 2 * scene.interval
    if appeared and samples[0].value > 0:
        return samples[0].at
    rise = rise_of(samples)
    return None if rise is None else rise.at


def _code(value: float) -> int:
    """Return the code of a sample, 0 for what can be none."""
    return int(value) if value == int(value) and 0 < value <= HIGHEST else 0


def _addresses(scene: Scene) -> dict[Part, str]:
    """Return the PCI addresses of GPUs as kernel lines write them: ``0000:b3:00``."""
    found = {}
    for part, labels in scene.labels.items():
        domain, _, rest = labels.get("pci_bus_id", "").lower().partition(":")
        if domain and rest:
            found[part] = f"{domain[-_PCI_DIGITS:]}:{rest.partition('.')[0]}"
    return found
