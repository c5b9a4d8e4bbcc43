"""Node health: what the counters and gauges of a node say went wrong inside the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.instants import Instant
from relight.model.records import Record
from relight.model.telemetry import Sample
from relight.perception.telemetry.erring import far_more
from relight.perception.telemetry.rises import reset_of, rise_of
from relight.perception.telemetry.scenes import Part, Scene
from relight.perception.telemetry.sharing import of_nodes, of_nodes_or_most
from relight.perception.telemetry.telling import Trouble
from relight.perception.telemetry.wanted import (
    BOOT_TIME,
    ENERGY,
    LINK_DOWNED,
    NVLINK_ERRORS,
    NVLINK_RECOVERIES,
    OOM_KILLS,
    PCIE_REPLAYS,
    PORT_STATE,
    REMAP_FAILURE,
    UNCORRECTABLE,
    Wanted,
)
from relight.rules.metrics.wording import number

ACTIVE = 4
"""An InfiniBand port's state when it carries traffic (InfiniBand architecture, PortState)."""
CLOCK_STEP = 60.0
"""Seconds by which a boot time moves with no reboot, when the clock is set."""


class Sign(Record, frozen=True, kw_only=True):
    """One GPU, port or node that shows something: in words, and since when."""

    part: Part
    words: str
    at: Instant


_Judge = Callable[[Sequence[Sample]], tuple[str, Instant] | None]


def health(scene: Scene) -> list[Finding]:
    """Return what the nodes' counters and gauges tell, a finding a rule and node."""
    found: list[Finding] = []
    for check in _CHECKS:
        parts: dict[Part, tuple[str, Instant]] = {}
        for sign in check.signs(scene):
            words, at = parts.get(sign.part, ("", sign.at))
            joined = f"{words}, {sign.words}" if words else sign.words
            parts[sign.part] = (joined, min(at, sign.at))
        if not parts:
            continue
        if check.may_be_shared:
            found += of_nodes_or_most(scene, check.trouble, check.says, parts, check.may_be_shared)
        else:
            found += of_nodes(scene, check.trouble, check.says, parts, mark=check.mark)
    return found


def _hardware(rule: str, family: str, *, role: Role = Role.ROOT, drain: bool = False) -> Trouble:
    return Trouble(
        rule=rule,
        family=family,
        kind=Kind.NODE,
        domain=Domain.HARDWARE,
        role=role,
        remedy=Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN if drain else Remedy.RESTART_EXCLUDING_NODE,
    )


def _signs(scene: Scene, wanted: Wanted, judge: _Judge) -> list[Sign]:
    found = []
    for part, samples in scene.of(wanted).items():
        judged = judge(samples)
        if judged is not None:
            words, at = judged
            found.append(Sign(part=part, words=f"{wanted.name} {words}", at=at))
    return found


def _outliers(scene: Scene, wanted: Wanted) -> list[Sign]:
    """Return whose counter rose in three scrapes at least, far more than those of its peers."""
    return [
        Sign(part=part, words=words, at=at)
        for part, (words, at) in far_more(scene, wanted, scene.window.since).items()
    ]


def _rose(samples: Sequence[Sample]) -> tuple[str, Instant] | None:
    rise = rise_of(samples)
    return None if rise is None else (f"rose by {number(rise.amount)}", rise.at)


def _became_set(samples: Sequence[Sample]) -> tuple[str, Instant] | None:
    if samples[0].value >= 1 or samples[-1].value < 1:
        return None
    start = next(sample for sample in samples if sample.value >= 1)
    return f"went to {number(samples[-1].value)}", start.at


def _was_set(samples: Sequence[Sample]) -> tuple[str, Instant] | None:
    if samples[0].value < 1 or samples[-1].value < 1:
        return None
    return f"is {number(samples[-1].value)}, since before the window", samples[0].at


def _went_down(samples: Sequence[Sample]) -> tuple[str, Instant] | None:
    """Tell of a port that was active before and then was not; one that never was is not in use."""
    was_active = False
    for sample in samples:
        if sample.value == ACTIVE:
            was_active = True
        elif was_active:
            return f"went from {ACTIVE} (active) to {number(sample.value)}", sample.at
    return None


def _moved(samples: Sequence[Sample]) -> tuple[str, Instant] | None:
    """Tell of a new start by the last scrape before it: until then the node was up."""
    for was, now in pairwise(samples):
        if now.value - was.value > CLOCK_STEP:
            return f"moved on by {number(now.value - was.value)} s", was.at
    return None


def _rose_after(samples: Sequence[Sample]) -> tuple[str, Instant] | None:
    """Tell of a rise by the last scrape before it: it came no earlier."""
    for was, now in pairwise(samples):
        if now.value > was.value:
            return f"rose by {number(now.value - was.value)}", was.at
    return None


def _fell(samples: Sequence[Sample]) -> tuple[str, Instant] | None:
    at = reset_of(samples)
    return None if at is None else ("fell", at)


@dataclass(frozen=True, slots=True)
class _Check:
    """What is looked for, what it says, and whether it often befalls many nodes at once."""

    trouble: Trouble
    says: str
    signs: Callable[[Scene], list[Sign]]
    mark: str = ""
    may_be_shared: tuple[Wanted, ...] = ()
    """The series that show whether other nodes have it too."""


def _any_of(*wanted: Wanted, judge: _Judge) -> Callable[[Scene], list[Sign]]:
    return lambda scene: [sign for one in wanted for sign in _signs(scene, one, judge)]


def _outliers_of(*wanted: Wanted) -> Callable[[Scene], list[Sign]]:
    return lambda scene: [sign for one in wanted for sign in _outliers(scene, one)]


_CHECKS = (
    _Check(
        _hardware("gpu-row-remap-failure", "gpu_ecc_uncorrectable", drain=True),
        "can no longer replace broken memory rows",
        _any_of(REMAP_FAILURE, judge=_became_set),
    ),
    _Check(
        _hardware("gpu-row-remap-failure", "gpu_ecc_uncorrectable", role=Role.EITHER, drain=True),
        "could not replace broken memory rows some time ago",
        _any_of(REMAP_FAILURE, judge=_was_set),
        mark="earlier",
    ),
    _Check(
        _hardware("gpu-ecc-uncorrectable", "gpu_ecc_uncorrectable", drain=True),
        "had memory errors that could not be corrected",
        _any_of(*UNCORRECTABLE, judge=_rose),
    ),
    _Check(
        _hardware("nvlink-errors", "gpu_nvlink_error"),
        "lost NVLinks and had to train them again",
        _any_of(NVLINK_RECOVERIES, judge=_rose),
        mark="recovery",
    ),
    _Check(
        _hardware("nvlink-errors", "gpu_nvlink_error", role=Role.EITHER),
        "had to send again over NVLink, far more often than other GPUs of the job",
        _outliers_of(*NVLINK_ERRORS),
        mark="retransmission",
    ),
    _Check(
        _hardware("pcie-errors", "gpu_hw_exception", role=Role.EITHER),
        "had to send again over PCIe, far more often than other GPUs of the job",
        _outliers_of(PCIE_REPLAYS),
    ),
    _Check(
        _hardware("infiniband-link-down", "ib_port_error"),
        "lost an InfiniBand link",
        lambda scene: _signs(scene, LINK_DOWNED, _rose) + _signs(scene, PORT_STATE, _went_down),
        may_be_shared=(LINK_DOWNED, PORT_STATE),
    ),
    _Check(
        _hardware("node-rebooted-by-metrics", "node_failure"),
        "started anew",
        _any_of(BOOT_TIME, judge=_moved),
        may_be_shared=(BOOT_TIME,),
    ),
    _Check(
        Trouble(
            rule="node-oom-kill",
            family="host_oom_kill",
            kind=Kind.NODE,
            domain=Domain.APPLICATION,
            role=Role.EITHER,
            remedy=Remedy.CONFIRM_THEN_STOP,
        ),
        "ran out of memory, and the kernel killed a process",
        _any_of(OOM_KILLS, judge=_rose_after),
    ),
    _Check(
        Trouble(
            rule="gpu-driver-reloaded",
            family="gpu_unavailable",
            kind=Kind.NODE,
            domain=Domain.SYSTEM_SOFTWARE,
            role=Role.SYMPTOM,
            remedy=Remedy.REPORT,
        ),
        "began to count energy anew: the driver was loaded again",
        _any_of(ENERGY, judge=_fell),
    ),
)
