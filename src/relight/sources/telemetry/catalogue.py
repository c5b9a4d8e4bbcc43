"""What is asked for: the series that judging wants, by exporter, and what tells devices apart.

Names and labels are those of dcgm-exporter (default-counters.csv and dcp-metrics-included.csv in
https://github.com/NVIDIA/dcgm-exporter) and of node_exporter
(https://github.com/prometheus/node_exporter).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum

from relight.perception.telemetry.wanted import WANTED


class Exporter(StrEnum):
    """Who exports a series, told by how its name begins."""

    DCGM = "dcgm-exporter"
    NODE = "node_exporter"


SUMMED = {
    wanted.name: ",".join(f'{label}="{value}"' for label, value in wanted.labels)
    for wanted in WANTED
    if wanted.labels
}
"""Series that the server sums up over a node, and which of them: there is one a processor."""

FINE = frozenset(
    name
    for name in (name for wanted in WANTED for name in wanted.names)
    if name.startswith("DCGM_FI_PROF_")
    or name in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE")
)
"""Series that move from scrape to scrape; the rest are states and counters."""

_EXTRA = ("xid", "clock_event", "GPU_I_ID")
_NODE_DEVICE = (
    "device",
    "port",
    "mountpoint",
    "controller",
    "csrow",
    "protocol",
    "method",
    "export",
)
_WHERE = {
    Exporter.DCGM: "in dcgm-exporter's counters file",
    Exporter.NODE: "by their collector in node_exporter",
}


def exporter_of(metric: str) -> Exporter:
    """Return who exports a series of this name."""
    return Exporter.DCGM if metric.startswith("DCGM_") else Exporter.NODE


def names() -> tuple[str, ...]:
    """Return the name of every series that is asked for, each once."""
    return tuple(dict.fromkeys(name for wanted in WANTED for name in wanted.names))


def device_of(metric: str, labels: Mapping[str, str]) -> str:
    """Return what tells the device of a series apart on its node, empty for the node as a whole.

    A GPU is its index, else its UUID; what a series has beside it (a part of a GPU, an Xid)
    follows a slash. Of a network adapter it is name and port.
    """
    if metric in SUMMED:
        return ""
    if exporter_of(metric) is Exporter.NODE:
        return "/".join(labels[name] for name in _NODE_DEVICE if labels.get(name))
    gpu = next((labels[name] for name in ("gpu", "UUID", "device") if labels.get(name)), "")
    return "/".join((gpu, *(labels[name] for name in _EXTRA if labels.get(name))))


def blind_spots(found: Collection[str]) -> Iterator[str]:
    """Yield a sentence for what cannot be told with only the series ``found``.

    An exporter of which nothing is found gets one sentence for all of its series.
    """
    present = {exporter_of(name) for name in found}
    for exporter in Exporter:
        if exporter not in present:
            yield (
                f"No series of {exporter} name these nodes: start it on them and let the metrics "
                "server scrape it."
            )
    missing: dict[tuple[Exporter, str], list[str]] = {}
    for wanted in WANTED:
        exporter = exporter_of(wanted.name)
        if exporter in present and not any(name in found for name in wanted.names):
            missing.setdefault((exporter, wanted.tells), []).append(wanted.name)
    for (exporter, tells), absent in missing.items():
        one = len(absent) == 1
        yield (
            f"No {', '.join(absent)}: {tells}; switch {'it' if one else 'them'} on "
            f"{_WHERE[exporter]}."
        )
