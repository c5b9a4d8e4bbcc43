"""What a metrics server knows of some nodes, for the person who connects it."""

from __future__ import annotations

from dataclasses import dataclass

from relight.clients.prometheus import MetricsError
from relight.model.hostlists import compress
from relight.sources.telemetry import catalogue
from relight.sources.telemetry.discoveries import (
    Discovery,
    Scope,
    discover,
    interval,
    known_nodes,
    labels_beside,
    strangers,
)

MOST_SHOWN = 160
"""Characters of a list of nodes in a sentence."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Which of the nodes a server knows, by which labels, which series it has, what is missing.

    ``unseen`` is a sentence when it gave no usable answer, or knows none of the nodes.
    ``interval`` is the usual time between two scrapes in seconds, the longest of all exporters.
    """

    asked: tuple[str, ...]
    known: frozenset[str] = frozenset()
    labels: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    interval: float | None = None
    blind: tuple[str, ...] = ()
    unseen: str = ""


def survey(scope: Scope) -> Survey:
    """Return what the server knows of the nodes; what fails is said, not raised.

    Without nodes it is only seen whether it answers.
    """
    asked = scope.names.nodes
    try:
        if not asked:
            scope.asked("vector(1)")
            return Survey(asked=asked)
        found = discover(scope)
        if not found.placed:
            return Survey(asked=asked, unseen=unknown_nodes(scope, found))
        known = known_nodes(scope, found)
        gaps = [interval(scope, group) for group in found.groups().values()]
    except MetricsError as error:
        return Survey(asked=asked, unseen=as_sentence(error))
    return Survey(
        asked=asked,
        known=known,
        labels=tuple(dict.fromkeys(one.label for one in found.placed.values())),
        metrics=tuple(sorted(found.placed)),
        interval=max((gap for gap in gaps if gap is not None), default=None),
        blind=(
            *disputes(found),
            *(f"The server warns: {text}." for text in found.warnings),
            *catalogue.blind_spots(found.placed),
        ),
    )


def unknown_nodes(scope: Scope, found: Discovery) -> str:
    """Return a sentence for a server that answers and knows none of the nodes.

    Raises:
        MetricsError: it does not even answer what it knows instead.

    """
    told = disputes(found)
    if told:
        return told[0]
    held = "; ".join(
        f"{label} is {', '.join(f'{value[:60]!a}' for value in values)}"
        for label, values in strangers(scope).items()
    )
    labels = ", ".join(scope.labels)
    others = tuple(one for one in labels_beside(scope) if one not in scope.labels)
    if others:
        right = " and ".join(others)
        cure = f"the label {right} holds their names: add it to node_labels"
    else:
        cure = "name the right label in node_labels, or let the server scrape these nodes"
    seen = "" if others and not held else f" ({held or 'no series has them'})"
    return (
        f"None of the labels {labels} names {shown(scope.names.nodes)} in any series that is "
        f"read{seen}: {cure}."
    )


def disputes(found: Discovery) -> tuple[str, ...]:
    """Return a sentence when several machines claim to be the same node."""
    if not found.disputed:
        return ()
    told = (
        f"Several machines bear the short name of {shown(sorted(found.disputed))}, so none of them "
        "is believed: put a label with the scheduler's own names first in node_labels."
    )
    return (told,)


def as_sentence(error: Exception) -> str:
    """Return what went wrong as a sentence that can stand by itself."""
    text = str(error)
    # An address is written as it is.
    return f"{text}." if text.startswith("http") else f"{text[:1].upper()}{text[1:]}."


def shown(nodes: tuple[str, ...] | list[str]) -> str:
    """Return nodes as a host list that is not too long for a sentence."""
    text = compress(nodes)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… ({len(nodes)} nodes)"
