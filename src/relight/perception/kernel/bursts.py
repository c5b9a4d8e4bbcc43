"""Many lines of one trouble become one finding.

A broken GPU fills a log: the same Xid comes for every process that meets it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from relight.model.findings import Finding
from relight.model.instants import Instant, Span, seconds

BURST = seconds(180)
"""Lines of one trouble no further apart tell it once; NVSentinel groups events likewise."""


def merged(findings: Iterable[Finding], apart: Span = BURST) -> tuple[Finding, ...]:
    """Return one finding for each burst, in the order of time, ``count`` added up.

    Of one burst are findings of one rule, node, device and fingerprint (which holds the code)
    of which none comes later than ``apart`` after the one before. The first is kept. A finding
    without a time stays by itself.
    """
    kept: list[Finding] = []
    open_bursts: dict[tuple[object, ...], tuple[int, Instant]] = {}
    for one in sorted(findings, key=_by_time):
        if one.at is None:
            kept.append(one)
            continue
        key = (one.rule, one.nodes, one.devices, one.fingerprint)
        number, last = open_bursts.get(key, (-1, one.at))
        if number >= 0 and one.at - last <= apart:
            first = kept[number]
            kept[number] = msgspec.structs.replace(first, count=first.count + one.count)
        else:
            number = len(kept)
            kept.append(one)
        open_bursts[key] = (number, one.at)
    return tuple(kept)


def _by_time(one: Finding) -> tuple[int, str, int]:
    place = one.place
    return (
        one.at if one.at is not None else 0,
        place.file if place else "",
        place.offset if place else 0,
    )
