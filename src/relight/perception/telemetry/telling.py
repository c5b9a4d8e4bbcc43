"""Findings of samples: what they say, in bounded words, and how they are told apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from relight.model.evidence import Window
from relight.model.findings import (
    Domain,
    Evidence,
    Finding,
    Kind,
    Provenance,
    Reach,
    Remedy,
    Role,
)
from relight.model.instants import Instant
from relight.model.records import Record, digest
from relight.rules.metrics.wording import shown_name

DETECTOR = "telemetry"
MOST_EVIDENCE = 12
"""Samples told with one finding."""
MOST_DEVICES = 64
MOST_NAMED = 8
"""Names listed in one sentence; the others are counted."""


class Trouble(Record, frozen=True, kw_only=True):
    """What a rule of telemetry says, whoever it is about."""

    rule: str
    family: str
    kind: Kind
    domain: Domain
    role: Role = Role.ROOT
    remedy: Remedy = Remedy.RESTART_EXCLUDING_NODE
    reach: Reach = Reach()


def told(  # noqa: PLR0913 - a finding has this many sides
    trouble: Trouble,
    window: Window,
    sentence: str,
    *,
    at: Instant,
    nodes: Sequence[str] = (),
    devices: Iterable[str] = (),
    evidence: Iterable[tuple[str, Instant]] = (),
    mark: str = "",
    again: Instant | None = None,
) -> Finding:
    """Return the finding of ``trouble``.

    ``mark`` is what tells two failures of one rule apart, such as a code, and goes into the
    fingerprint. ``again`` is the instant of the silence or slowness that was asked about: the
    same pattern in another one is another finding.
    """
    shown = tuple(shown_name(device) for device in islice(devices, MOST_DEVICES))
    episode = "" if again is None else str(again)
    return Finding(
        id=digest(str(window.attempt), DETECTOR, trouble.rule, *nodes, mark, episode),
        detector=DETECTOR,
        rule=trouble.rule,
        family=trouble.family,
        kind=trouble.kind,
        role=trouble.role,
        domain=trouble.domain,
        remedy=trouble.remedy,
        attempt=window.attempt,
        seen_at=window.until,
        sentence=sentence,
        provenance=Provenance.TELEMETRY,
        at=at,
        nodes=tuple(nodes),
        devices=shown,
        evidence=tuple(
            Evidence(text=text, at=when, is_root=number == 0)
            for number, (text, when) in enumerate(islice(evidence, MOST_EVIDENCE))
        ),
        reach=trouble.reach,
        fingerprint="|".join(part for part in (trouble.rule, mark) if part),
    )


def listed(names: Iterable[str]) -> str:
    """Return names for a sentence: ``a``, ``a and b``, ``a, b, c and 5 others``."""
    shown = [shown_name(name) for name in names]
    if len(shown) > MOST_NAMED:
        return f"{', '.join(shown[:MOST_NAMED])} and {len(shown) - MOST_NAMED} others"
    if len(shown) < 2:  # noqa: PLR2004 - one name needs no "and"
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def gpus_of(node: str, devices: Sequence[str]) -> str:
    """Return ``GPU 3 of node-7`` or ``GPUs 2 and 3 of node-7``."""
    return f"GPU{'s' if len(devices) > 1 else ''} {listed(devices)} of {shown_name(node)}"


def by_node(parts: Iterable[tuple[str, str]]) -> Mapping[str, list[str]]:
    """Return devices by their nodes, both in the order in which they come."""
    nodes: dict[str, list[str]] = {}
    for node, device in parts:
        nodes.setdefault(node, []).append(device)
    return nodes
