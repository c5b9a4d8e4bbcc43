"""What an Xid code means: what the signature rules say of the same code in a kernel log.

One table for both, so that log and metric agree. It is asked with lines as the driver writes
them; the codes follow NVIDIA's Xid catalogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from relight.model.findings import Domain, Kind, Remedy, Role
from relight.perception.telemetry.telling import Trouble
from relight.rules.loading import load
from relight.rules.patterns import CompiledRule
from relight.rules.schema import Rule

HIGHEST = 999
"""Above every code of the catalogue: a greater value is none."""
_LINES = (
    "NVRM: Xid (PCI:0000:01:00): {code}, pid=1, name=python",
    "NVRM: Xid (PCI:0000:01:00): {code}, NETIR Fatal XC0 i0 Link 0",
)
"""Codes of NVLink 5 (144 to 150) have a rule only where the line says how severe they are."""
_DEPENDS = frozenset((*range(144, 151), 154))
"""Codes whose severity stands in the line alone: a metric that gives the code does not tell it."""

_RULE = "gpu-xid"
_UNCLEAR = Trouble(
    rule=_RULE,
    family="gpu_hw_exception",
    kind=Kind.NODE,
    domain=Domain.HARDWARE,
    role=Role.EITHER,
)
_UNKNOWN = Trouble(
    rule=_RULE,
    family="gpu_hw_exception",
    kind=Kind.NODE,
    domain=Domain.UNKNOWN,
    role=Role.SYMPTOM,
    remedy=Remedy.REPORT,
)


@lru_cache(maxsize=HIGHEST + 1)
def trouble_of(code: int) -> Trouble | None:
    """Return what Xid ``code`` says of the GPU that reports it, None when it says nothing.

    A code that no rule knows is a symptom of something unknown.
    """
    rule = _rule_of(code)
    if rule is not None and rule.role is Role.BENIGN:
        return None
    if code in _DEPENDS:
        family = rule.family if rule is not None else "gpu_hw_exception"
        return msgspec.structs.replace(_UNCLEAR, family=family)
    if rule is None:
        return _UNKNOWN
    return Trouble(
        rule=_RULE,
        family=rule.family,
        kind=Kind.NODE,
        domain=rule.domain,
        role=rule.role,
        remedy=rule.remedy,
        reach=rule.reach,
    )


def title_of(code: int) -> str:
    """Return in a few words what the code is about, empty where no rule knows it."""
    rule = _rule_of(code)
    return rule.title if rule is not None else ""


@lru_cache(maxsize=HIGHEST + 1)
def _rule_of(code: int) -> Rule | None:
    for line in _LINES:
        raw = line.format(code=code).encode()
        for rule, compiled in _rules():
            captures = compiled.captures(raw)
            if captures is not None and captures.get("code") == str(code):
                return rule
    return None


@lru_cache(maxsize=1)
def _rules() -> Sequence[tuple[Rule, CompiledRule]]:
    """Return the packaged rules that hear Xid lines; reading them takes a fifth of a second."""
    return tuple(
        (rule, CompiledRule(rule))
        for rule in load()
        if any("Xid" in pattern and "<code>" in pattern for pattern in rule.patterns)
    )
