"""Numeric trouble that comes again: at the same step it is the code's, with a node the node's.

A loss that is no number after the same step on other nodes was computed so, whoever computes it.
One that comes at another step each time, always with one node and never without it, is what a
processor does that computes wrongly without a word. Source: Meta's and Google's accounts of
silent data corruption at scale (2021), where reproduction on the one machine was the only proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from relight.model.findings import Domain, Remedy
from relight.model.records import Record
from relight.model.verdicts import Suspect, Verdict

A_FEW_STEPS = 5
"""Steps that two attempts may differ by and still fail at the same one: a loss is not printed
at every step, and the step before a line is known only as far as lines tell it."""


class Trouble(Record, frozen=True, kw_only=True):
    """Numeric trouble of one attempt: what sort, after which step, on which nodes."""

    attempt: int
    rule: str
    step: int | None
    nodes: tuple[str, ...] = ()
    steps_made: int = 0


class Clean(Record, frozen=True, kw_only=True):
    """An attempt without numeric trouble: its nodes, and how many steps it completed there."""

    nodes: tuple[str, ...]
    steps_made: int


class Course(StrEnum):
    """What repeated numeric trouble follows."""

    SAME_STEP = "same_step"
    SAME_NODE = "same_node"
    UNKNOWN = "unknown"


class Repeated(Record, frozen=True, kw_only=True):
    """What trouble follows, the earlier attempts that show it, and the nodes it came with."""

    course: Course = Course.UNKNOWN
    attempts: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()


def repeated(now: Trouble, before: Sequence[Trouble], clean: Sequence[Clean] = ()) -> Repeated:
    """Return what numeric trouble follows over the attempts of one job."""
    same = [
        one.attempt for one in before if _at_same_step(now, one) and set(one.nodes) != {*now.nodes}
    ]
    if same:
        return Repeated(course=Course.SAME_STEP, attempts=tuple(same))
    other = [one for one in before if _at_other_step(now, one)]
    enough = min((one.steps_made for one in (now, *other)), default=0)
    without = [one for one in clean if one.steps_made >= max(enough, 1)]
    for one in other:
        shared = [node for node in now.nodes if node in one.nodes]
        left = tuple(
            node
            for node in shared
            if without and all(node not in passed.nodes for passed in without)
        )
        if len(left) == 1:
            return Repeated(course=Course.SAME_NODE, attempts=(one.attempt,), nodes=left)
    return Repeated()


def judged(verdict: Verdict, found: Repeated) -> Verdict:
    """Return the verdict with what the earlier attempts add to it."""
    earlier = ", ".join(str(number) for number in found.attempts)
    match found.course:
        case Course.SAME_STEP:
            return _replaced(
                verdict,
                domain=Domain.APPLICATION,
                remedy=Remedy.STOP,
                suspects=(),
                more=f"attempt {earlier} came to the same at this step on other nodes, so it is "
                "the application's own",
            )
        case Course.SAME_NODE:
            node = found.nodes[0]
            why = f"in attempt {earlier} too, and never without it"
            return _replaced(
                verdict,
                domain=Domain.HARDWARE,
                remedy=Remedy.RESTART_EXCLUDING_NODE,
                suspects=(Suspect(node=node, share=1.0, why=f"it came with this node {why}"),),
                more=f"it came with {node} {why}: silent data corruption is suspected there",
            )
        case Course.UNKNOWN:
            return verdict


def _replaced(
    verdict: Verdict,
    *,
    domain: Domain,
    remedy: Remedy,
    suspects: tuple[Suspect, ...],
    more: str,
) -> Verdict:
    return msgspec.structs.replace(
        verdict,
        domain=domain,
        remedy=remedy,
        suspects=suspects,
        sentence=f"{verdict.sentence}; {more}",
    )


def _at_same_step(one: Trouble, other: Trouble) -> bool:
    if one.step is None or other.step is None or one.rule != other.rule:
        return False
    return abs(one.step - other.step) <= A_FEW_STEPS


def _at_other_step(one: Trouble, other: Trouble) -> bool:
    if one.step is None or other.step is None:
        return False
    return abs(one.step - other.step) > A_FEW_STEPS
