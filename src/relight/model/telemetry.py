"""What a metrics server told of the nodes of one attempt in one window of time."""

from __future__ import annotations

import msgspec

from relight.model.instants import Instant
from relight.model.records import Record


class Sample(Record, frozen=True, kw_only=True, array_like=True):
    """One value of one series. It is never NaN: what is no number is left out."""

    at: Instant
    value: float


class Series(Record, frozen=True, kw_only=True):
    """The samples of one series, oldest first, at the server's steps.

    ``node`` is the scheduler's own name of the node, ``device`` what tells the GPU, NIC or port
    apart on it (GPU index, else UUID or device name), empty for the node as a whole. ``metric``
    is the name as the exporter writes it, such as ``DCGM_FI_DEV_GPU_UTIL``.
    """

    metric: str
    node: str
    device: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    samples: tuple[Sample, ...] = ()


class Sight(Record, frozen=True, kw_only=True):
    """All series of the attempt's nodes in the window, and what could not be seen.

    ``interval`` is the usual time between two scrapes in seconds, None when not known. ``blind``
    are sentences, each of what this server cannot tell (a series that it does not have).
    ``unseen`` is one sentence when the server gave no usable answer at all: then nothing may be
    concluded, least of all that all is well (law 1).
    """

    source: str
    since: Instant
    until: Instant
    series: tuple[Series, ...] = ()
    interval: float | None = None
    blind: tuple[str, ...] = ()
    unseen: str = ""
