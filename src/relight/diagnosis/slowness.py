"""A run that has become slow: which machine holds the others up, or what all of them wait for."""

from __future__ import annotations

from collections.abc import Sequence

from relight.diagnosis.causes import Located
from relight.diagnosis.endings import Ending
from relight.diagnosis.placing import Places
from relight.diagnosis.stating import Reading, is_explanation, stated, with_words
from relight.diagnosis.witnesses import LINKS, Heard, nodes_of
from relight.model.findings import Domain, Finding, Kind, Remedy, Role

_ONE_NODE = Reading(
    domain=Domain.HARDWARE,
    remedy=Remedy.RESTART_EXCLUDING_NODE,
    weight=0.65,
    what="one node alone stands out among its peers",
    why="it stands out among its peers while the run is slow",
    kind=Kind.SLOW,
)
_A_FEW = Reading(
    domain=Domain.HARDWARE,
    remedy=Remedy.RESTART_EXCLUDING_NODE,
    weight=0.6,
    what="few of many nodes stand out among their peers",
    why="it stands out among its peers while the run is slow",
    kind=Kind.SLOW,
)
_NAMED_SHARE = 8
"""An eighth of the nodes may be blamed at most, or one: more is no fault of single nodes."""
_SHOWN = 4
_SHARED = Reading(
    domain=Domain.HARDWARE,
    remedy=Remedy.REPORT,
    weight=0.45,
    what="several nodes show the same, so none is blamed",
    kind=Kind.SLOW,
)
_DATA = Reading(
    domain=Domain.STORAGE,
    remedy=Remedy.REPORT,
    weight=0.55,
    what="data or storage is waited for",
    kind=Kind.SLOW,
)
_UNKNOWN = Reading(
    domain=Domain.UNKNOWN,
    remedy=Remedy.REPORT,
    weight=0.3,
    what="the steps are slower, and nothing else is seen",
    kind=Kind.SLOW,
)


def of_slowness(
    heard: Heard, places: Places, ending: Ending, log: Located | None
) -> Located | None:
    """Return why a run has become slow, None where it ended: slowness ends nothing."""
    slowdown = heard.slowdown
    if slowdown is None or ending.state is not None:
        return None
    if log is not None and log.root is not None and is_explanation(log.root):
        is_machine = log.verdict.domain is Domain.HARDWARE and bool(log.verdict.suspects)
        if is_machine:
            return with_words(log, "; the steps are slower since")
    machines, waits = _reasons(heard)
    nodes = nodes_of(machines, places)
    if 0 < len(nodes) <= max(1, len(places.allocation.nodes) // _NAMED_SHARE):
        pointing = next(one for one in machines if places.of(one))
        reading = _ONE_NODE if len(nodes) == 1 else _A_FEW
        return stated(pointing, reading, nodes=nodes, complaint=slowdown)
    if waits or slowdown.domain is Domain.STORAGE:
        return stated(waits[0] if waits else slowdown, _DATA, complaint=slowdown)
    if machines:
        said = stated(machines[0], _SHARED, complaint=slowdown)
        also = ", ".join(node for node in nodes[:_SHOWN] if node not in said.verdict.sentence)
        more = ", …" if len(nodes) > _SHOWN else ""
        words = f" ({also}{more})" if also else ""
        return with_words(said, f"; several nodes show the like{words}, so none is blamed")
    return with_words(stated(slowdown, _UNKNOWN), "; nothing else that was seen says why")


def _reasons(heard: Heard) -> tuple[list[Finding], list[Finding]]:
    """Return what is wrong with machines, and what says that storage is waited for."""
    links = [one for one in heard.soft if one.rule in LINKS]
    said = [one for one in heard.events if one.kind is Kind.SLOW and one.role is not Role.BENIGN]
    told = _in_order([*heard.stragglers, *links, *said])
    waits = [one for one in told if one.domain is Domain.STORAGE]
    return [one for one in told if one.domain is not Domain.STORAGE], waits


def _in_order(found: Sequence[Finding]) -> list[Finding]:
    """Return the findings that name a node before the others, each part in its order."""
    return sorted(found, key=lambda one: not one.nodes)
