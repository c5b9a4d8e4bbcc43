"""Numbers gone bad: the program's own as a rule, a machine's where its memory failed just then."""

from __future__ import annotations

import msgspec

from relight.diagnosis.causes import Located
from relight.diagnosis.clocks import in_time_order
from relight.diagnosis.endings import Ending
from relight.diagnosis.placing import Places
from relight.diagnosis.stating import (
    Reading,
    is_explanation,
    stated,
    went_on,
    with_words,
)
from relight.diagnosis.trust import xid_of
from relight.diagnosis.witnesses import Heard, nodes_of
from relight.model.findings import Domain, Finding, Kind, Remedy
from relight.model.verdicts import Alternative

_OF_MEMORY = frozenset({48, 63, 64, 94, 95, 140, 171, 172})
"""Xids of a GPU's memory. Source: NVIDIA's Xid catalogue."""
_MEMORY_RULES = frozenset(
    {
        "gpu-ecc-uncorrectable",
        "gpu-ecc-contained",
        "gpu-row-remap-failure",
        "kernel-machine-check",
        "kernel-machine-check-logged",
        "amdgpu-uncorrectable",
    }
)
_CORRUPTED = Reading(
    domain=Domain.HARDWARE,
    remedy=Remedy.RESTART_EXCLUDING_NODE,
    weight=0.6,
    what="memory of one node failed at about the time the numbers went bad",
    why="its memory failed at about the time the numbers went bad",
    kind=Kind.NUMERIC,
)
_PROGRAMS = Reading(
    domain=Domain.APPLICATION,
    remedy=Remedy.CONFIRM_THEN_STOP,
    weight=0.6,
    what="numbers go bad by what the program computes, as a rule",
    kind=Kind.NUMERIC,
)
_TOLD = msgspec.structs.replace(_PROGRAMS, remedy=Remedy.REPORT)
_SPIKE = "loss-spike"
_RAISED_FOR_IT = frozenset({"user_code_exception", "worker_process_lost", "cuda_device_assert"})
"""Families of what a program raises that finds its own numbers bad."""


def of_corruption(heard: Heard, places: Places) -> Located | None:
    """Return that a machine's memory is suspected of having spoilt the numbers, if one's failed."""
    if not heard.numbers or heard.silence is not None:
        return None
    found = [one for one in (*heard.events, *heard.soft, *heard.remarks) if _is_of_memory(one)]
    nodes = nodes_of(found, places)
    if len(nodes) != 1:
        return None
    pointing = next(one for one in found if places.of(one))
    located = stated(pointing, _CORRUPTED, nodes=nodes, complaint=heard.numbers[0])
    other = Alternative(
        cause=heard.numbers[0].rule,
        domain=Domain.APPLICATION,
        confidence=0.3,
        why="numbers go bad by what the program computes, as a rule",
    )
    verdict = msgspec.structs.replace(located.verdict, alternatives=(other,))
    located = msgspec.structs.replace(located, verdict=verdict)
    return with_words(located, "; it may have spoilt what was computed there")


def of_numbers(heard: Heard, ending: Ending, log: Located | None) -> Located | None:
    """Return that the program's numbers went bad, None where a line explains the trouble better.

    A loss that jumped ends nothing, and many come down again: it is only told.
    """
    bad = heard.numbers
    first = next((one for one in bad if one.rule != _SPIKE), bad[0] if bad else None)
    if first is None or (first.rule == _SPIKE and ending.state is not None):
        return None
    if log is not None and log.root is not None and _is_better(log.root, first):
        return None
    ranks = tuple(sorted({rank for one in bad for rank in one.ranks}))
    reading = _TOLD if first.rule == _SPIKE else _PROGRAMS
    located = stated(first, reading, ranks=ranks)
    if len(ranks) == 1:
        words = "; it shows on that rank alone, so that rank's machine may have a part in it"
        return with_words(located, words)
    return located


def _is_better(root: Finding, bad: Finding) -> bool:
    """Tell whether a line explains the trouble: not one that was raised for the bad numbers."""
    if root.kind is Kind.NUMERIC:
        return True
    if not is_explanation(root) or went_on(root, bad):
        return False
    if bad.rule == _SPIKE or root.family not in _RAISED_FOR_IT:
        return True
    return in_time_order([root, bad])[0].id == root.id


def _is_of_memory(one: Finding) -> bool:
    if one.rule in _MEMORY_RULES or one.family == "gpu_ecc_uncorrectable":
        return True
    is_kernels = one.kind in (Kind.NODE, Kind.CRASH)
    return is_kernels and xid_of(one) in _OF_MEMORY
