"""Values that DCGM writes where a GPU has no answer are no values."""

from __future__ import annotations

import pytest

from relight.perception.telemetry.blanks import is_blank
from relight.perception.telemetry.wanted import WANTED

TEMPERATURE, THERMAL = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_THERMAL_VIOLATION"
DOUBLE_BITS, XID = "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_XID_ERRORS"


@pytest.mark.parametrize("metric", [one.name for one in WANTED if one.name.startswith("DCGM")])
@pytest.mark.parametrize(
    "value", [0x7FFFFFF0, 0x7FFFFFF2, 0x7FFFFFFFFFFFFFF0, 9223372036854775794, 2**47 + 3, -1]
)
def test_no_series_of_dcgm_takes_a_blank_for_a_value(metric: str, value: int) -> None:
    assert is_blank(metric, float(value))


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (TEMPERATURE, 88.0),
        (THERMAL, 4e9),
        (THERMAL, 2e14),
        (DOUBLE_BITS, 3.0),
        (XID, 0.0),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 8e13),
        ("node_boot_time_seconds", float(0x7FFFFFF1)),
        ("node_network_receive_bytes_total", 2.0**63),
    ],
)
def test_what_is_measured_is_kept(metric: str, value: float) -> None:
    assert not is_blank(metric, value)


@pytest.mark.parametrize("value", [4294967295.0, 1e15])
def test_no_gpu_lives_through_so_many_events(value: float) -> None:
    assert is_blank(DOUBLE_BITS, value)
    assert not is_blank(THERMAL, value)
