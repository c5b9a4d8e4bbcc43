"""Values that stand for none: what DCGM writes where a GPU has no answer.

Blank, not found, not supported and not permitted are the sixteen highest whole numbers, or those
from 2^47 on where a field is a fraction. Source: ``DCGM_INT32_BLANK`` (0x7ffffff0),
``DCGM_INT64_BLANK`` (0x7ffffffffffffff0) and ``DCGM_FP64_BLANK`` (140737488355328.0) in
NVIDIA's ``dcgm_structs.h``. dcgm-exporter leaves them out, other exporters do not.
"""

from __future__ import annotations

from relight.perception.telemetry.wanted import (
    LAST_XID,
    NVLINK_ERRORS,
    NVLINK_RECOVERIES,
    PCIE_REPLAYS,
    REMAP_FAILURE,
    UNCORRECTABLE,
    XIDS_COUNTED,
)

_LOWEST_32, _LOWEST_FRACTION = float(0x7FFFFFF0), float(2**47)
_LOWEST_64 = float(2**62)
"""Well below 0x7ffffffffffffff0, which is no exact fraction, and above all that is measured."""
_MANY = 16
_OF_DCGM = "DCGM_"
_COUNTS = frozenset(
    name
    for one in (
        LAST_XID,
        XIDS_COUNTED,
        REMAP_FAILURE,
        *UNCORRECTABLE,
        NVLINK_RECOVERIES,
        *NVLINK_ERRORS,
        PCIE_REPLAYS,
    )
    for name in one.names
)
"""Numbers of events: no GPU lives through as many as a 32-bit blank stands for."""


def is_blank(metric: str, value: float) -> bool:
    """Tell whether a value of a series of DCGM stands for none; no such series goes below 0."""
    if 0 <= value < _LOWEST_32 or not metric.startswith(_OF_DCGM):
        return False
    if value < 0 or value >= _LOWEST_64 or (metric in _COUNTS and value >= _LOWEST_32):
        return True
    return any(lowest <= value < lowest + _MANY for lowest in (_LOWEST_32, _LOWEST_FRACTION))
