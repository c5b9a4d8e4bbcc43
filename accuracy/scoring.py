"""An answer against a label: right, wrong, or not asked."""

from __future__ import annotations

from collections.abc import Sequence

from accuracy.answers import Answer
from accuracy.labels import ENDS, QUIET, Label
from relight.model.records import Record

ASPECTS = (
    "kind",
    "ending",
    "domain",
    "family",
    "root line",
    "rank",
    "node",
    "decision",
    "last step",
)
"""What is measured of each answer, in the order of the table."""


class Score(Record, frozen=True, kw_only=True):
    """Which aspects of one answer are right; one that the label does not ask for is missing.

    ``strays`` are ranks and nodes that were named and may not be.
    """

    case: str
    right: dict[str, bool]
    false_stop: bool = False
    false_alarm: bool = False
    strays: tuple[str, ...] = ()

    @property
    def wrong(self) -> tuple[str, ...]:
        """Return what was answered wrongly, in the order of the table."""
        return tuple(name for name in ASPECTS if self.right.get(name) is False)


class Share(Record, frozen=True, kw_only=True):
    """How many of those that were asked for are right."""

    right: int
    asked: int

    @property
    def percent(self) -> float | None:
        """Return the share in percent, None where none was asked for."""
        return 100 * self.right / self.asked if self.asked else None


def score(answer: Answer, label: Label) -> Score:
    """Return how right an answer is.

    Ranks and nodes are right when all that the label names are named and none that it does
    not know of; they are asked for where the label names one. ``hold`` is a restart that
    waits, and counts as one.
    """
    decision = "restart" if answer.decision == "hold" else answer.decision
    is_quiet = label.kind in QUIET
    return Score(
        case=label.id,
        right=_right(answer, label, decision),
        false_stop=decision == "stop" and "stop" not in label.decisions,
        false_alarm=is_quiet and (answer.kind not in label.kinds or decision not in label.decisions)
        if answer.kind is not None
        else is_quiet,
        strays=_strays(answer, label),
    )


def shares(scores: Sequence[Score]) -> dict[str, Share]:
    """Return for every aspect how many answers are right, of those that were asked for."""
    found: dict[str, Share] = {}
    for name in ASPECTS:
        asked = [one.right[name] for one in scores if name in one.right]
        found[name] = Share(right=sum(asked), asked=len(asked))
    return found


def _right(answer: Answer, label: Label, decision: str) -> dict[str, bool]:
    right = {"decision": decision in label.decisions}
    if answer.kind is not None:
        right["kind"] = answer.kind in label.kinds
    if answer.domain is not None:
        ending = label.kind if label.kind in ENDS else None
        right["ending"] = answer.ending == ending or _is_open(label, answer.ending)
        right["domain"] = answer.domain in label.domains
        right["family"] = answer.family in label.families
        if label.has_step:
            right["last step"] = answer.last_step in label.steps
    if label.root_lines:
        right["root line"] = answer.root_line in label.root_lines
    if label.ranks:
        said = set(answer.ranks)
        right["rank"] = set(label.ranks) <= said <= {*label.ranks, *label.ranks_optional}
    if label.nodes:
        named = set(answer.nodes)
        right["node"] = set(label.nodes) <= named <= {*label.nodes, *label.nodes_optional}
    return right


def _is_open(label: Label, ending: str | None) -> bool:
    """Tell whether a label that accepts a failure beside an ending accepts no ending at all."""
    return label.kind in ENDS and ending is None and bool(label.kinds - {"none"})


def _strays(answer: Answer, label: Label) -> tuple[str, ...]:
    ranks = sorted(set(answer.ranks) - {*label.ranks, *label.ranks_optional})
    nodes = sorted(set(answer.nodes) - {*label.nodes, *label.nodes_optional})
    return (*(f"rank {rank}" for rank in ranks), *(f"node {node}" for node in nodes))
