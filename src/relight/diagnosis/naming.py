"""One name for each machine, where a launcher and the program call it differently.

DeepSpeed's and pdsh's prefixes name a machine as the hostfile does, often by address, and NCCL
names it by its own host name just behind. A collector that ships everybody's lines puts its
own name in front of many machines' or of srun's, and stands for none of them.
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Sequence

import msgspec

from relight.diagnosis.deaths import root_text
from relight.model.findings import Finding
from relight.model.jobs import Allocation

_TIME = (
    r"(?:(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|20\d\d-\d\d-\d\d[T ][\d:.,]{8,18}(?:Z|[+-][\d:]{4,5})?) )?"
)
_OUTER = re.compile(
    rf"(?:\([^()]{{1,80}}, ip=(?P<ip>[\w.:-]{{1,60}})\)"
    rf"|{_TIME}\W{{0,3}}(?P<outer>[A-Za-z0-9][\w.-]{{0,80}})(?::| {{0,8}}\|)?) {_TIME}"
    r"(?:[\w./-]{1,60}\[\d{1,9}\]: )?(?:\d{1,6}: )?"
)
"""What a launcher or collector puts in front of a line, up to where its own words begin."""


def by_one_name(findings: Sequence[Finding], allocation: Allocation) -> list[Finding]:
    """Return findings in which a machine with two names bears one, and a collector none.

    The name is the one that ``allocation`` knows, else the address in front, else the host's
    own.
    """
    named = {one.nodes[0] for one in findings if len(one.nodes) == 1}
    inside: dict[str, set[str]] = defaultdict(set)
    names: dict[str, str] = {}
    for one in findings:
        text = root_text(one)
        match = _OUTER.match(text)
        outer = (match["ip"] or match["outer"]) if match is not None else ""
        if match is None or outer not in named or (outer,) == one.nodes:
            continue
        if text.startswith("srun: ", match.end()):
            names[outer] = ""
        elif len(one.nodes) == 1 and _names(one.nodes[0], text[match.end() :]):
            inside[outer].add(one.nodes[0])
    for outer, inner in sorted(inside.items()):
        if len(inner) > 1 or outer in names:
            names[outer] = ""
        else:
            own = next(iter(inner))
            kept = _kept(outer, own, allocation)
            names[own if kept == outer else outer] = kept
    return [_renamed(one, names) for one in findings] if names else list(findings)


def _names(host: str, text: str) -> bool:
    """Tell whether a line's own words name its host, as NCCL's and torchelastic's box do."""
    if text.startswith(host):
        return True
    field, _, value = text.partition(" : ")
    return field.strip() == "host" and value.strip() == host


def _kept(outer: str, own: str, allocation: Allocation) -> str:
    for name in (outer, own):
        if allocation.member(name) is not None:
            return name
    return outer if _is_address(outer) else own


def _renamed(one: Finding, names: dict[str, str]) -> Finding:
    if not any(node in names for node in one.nodes):
        return one
    nodes = dict.fromkeys(names.get(node, node) for node in one.nodes)
    return msgspec.structs.replace(one, nodes=tuple(node for node in nodes if node))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
