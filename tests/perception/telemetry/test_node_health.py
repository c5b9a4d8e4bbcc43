"""What counters and gauges say of a node's health inside the window."""

from __future__ import annotations

import msgspec
import pytest

from relight.model.evidence import Window
from relight.model.findings import Domain, Finding, Kind, Provenance, Remedy, Role
from relight.model.instants import EPOCH, from_unix, seconds
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.telemetry import Sample, Series, Sight
from relight.perception.telemetry.judging import judge
from relight.perception.telemetry.wanted import WANTED
from relight.perception.telemetry.xids import trouble_of
from relight.rules.metrics.judging import instants
from relight.rules.metrics.notation import read_series

UNTIL = from_unix(900)
WINDOW = Window(
    attempt=AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0),
    allocation=Allocation(nodes=("node-1", "node-2", "node-3", "node-4")),
    since=EPOCH,
    until=UNTIL,
)
IN_TROUBLE = msgspec.structs.replace(WINDOW, silent_since=from_unix(400), slow_since=from_unix(400))
XID = "DCGM_FI_DEV_XID_ERRORS"
COUNTED = "DCGM_EXP_XID_ERRORS_TOTAL"


def series(metric: str, node: str, device: str, values: str, **labels: str) -> Series:
    return Series(
        metric=metric,
        node=node,
        device=device,
        labels=labels,
        samples=instants(EPOCH, seconds(30), read_series(values)),
    )


def judged(*given: Series) -> tuple[Finding, ...]:
    return judge(Sight(source="site", since=EPOCH, until=UNTIL, series=given), WINDOW)


def on_each(metric: str, values: str, device: str = "0", **other: str) -> list[Series]:
    """Return one series a node: ``values``, or those of ``other`` (``n2``)."""
    return [
        series(metric, node, device, other.get(f"n{node[-1]}", values))
        for node in WINDOW.allocation.nodes
    ]


def test_an_xid_is_read_by_change() -> None:
    (found,) = judged(series(XID, "node-2", "3", "0x9 79x9", pci_bus_id="00000000:B3:00.0"))
    assert (found.rule, found.kind, found.nodes) == ("gpu-xid", Kind.NODE, ("node-2",))
    assert (found.role, found.domain) == (Role.ROOT, Domain.HARDWARE)
    assert found.remedy is Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN
    assert found.devices == ("3", "0000:b3:00")
    assert found.at == from_unix(300)
    assert found.fingerprint == "gpu-xid|code=79"
    assert found.provenance is Provenance.TELEMETRY
    assert found.sentence.startswith("GPU 3 of node-2 reported Xid 79 (")
    assert found.evidence[0].text == ("GPU 3 of node-2: DCGM_FI_DEV_XID_ERRORS went from 0 to 79")


HISTORY = [
    pytest.param("79x20", id="it stood there all along"),
    pytest.param("0x20", id="there was none"),
    pytest.param("79x5 0x5 79x5", id="the exporter started anew and read the last one again"),
    pytest.param("79x5 _x5 79x5", id="a gap"),
    pytest.param("0x5 0.5x5", id="half a code"),
    pytest.param("0x5 123456x5", id="no code at all"),
    pytest.param("-1x5 -2x5", id="negative"),
    pytest.param("63x3 0x3 92x3", id="codes without effect on the job"),
]


@pytest.mark.parametrize("values", HISTORY)
def test_an_xid_of_long_ago_is_no_event(values: str) -> None:
    assert judged(series(XID, "node-2", "3", values)) == ()


CODES = [
    (43, Role.SYMPTOM, Domain.UNKNOWN),
    (45, Role.SYMPTOM, Domain.UNKNOWN),
    (13, Role.EITHER, Domain.APPLICATION),
    (31, Role.EITHER, Domain.APPLICATION),
    (48, Role.ROOT, Domain.HARDWARE),
    (64, Role.ROOT, Domain.HARDWARE),
    (95, Role.ROOT, Domain.HARDWARE),
    (149, Role.EITHER, Domain.HARDWARE),
    (154, Role.EITHER, Domain.HARDWARE),
    (999, Role.SYMPTOM, Domain.UNKNOWN),
]


@pytest.mark.parametrize(("code", "role", "domain"), CODES)
def test_a_code_means_what_it_means_in_a_kernel_log(code: int, role: Role, domain: Domain) -> None:
    (found,) = judged(series(XID, "node-1", "0", f"0x3 {code}x3"))
    assert (found.role, found.domain) == (role, domain)


def test_xid_31_on_one_gpu_may_be_the_node_and_43_never_is() -> None:
    fault, reset = trouble_of(31), trouble_of(43)
    assert fault is not None
    assert reset is not None
    assert fault.reach.one_node is Remedy.RESTART_EXCLUDING_NODE
    assert reset.remedy is Remedy.REPORT


def test_counted_xids_are_heard_too_and_told_once() -> None:
    found = judged(
        series(XID, "node-1", "3", "0x6 45x6"),
        series(COUNTED, "node-1", "3/48", "_x6 1x6", xid="48"),
        series(COUNTED, "node-1", "3/45", "0x6 1 2x5", xid="45"),
        series(COUNTED, "node-2", "3/79", "4x12", xid="79"),
        series(COUNTED, "node-2", "4/no", "0x6 4x5", xid="no"),
    )
    assert [(one.fingerprint, one.nodes) for one in found] == [
        ("gpu-xid|code=45", ("node-1",)),
        ("gpu-xid|code=48", ("node-1",)),
    ]


SIGNS = [
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "0x5 1x5", "gpu-row-remap-failure"),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "1x10", "gpu-row-remap-failure"),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "0x5 1 0x5", ""),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "3x5 4x5", "gpu-ecc-uncorrectable"),
    ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "3x5 4x5", "gpu-ecc-uncorrectable"),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "3x5 0x5", ""),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "3x10", ""),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "0x5 2x5", "gpu-ecc-uncorrectable"),
    ("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "0x5 1x5", "nvlink-errors"),
    ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "0+50x9", "nvlink-errors"),
    ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "0+1x9", ""),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "7+20x9", "pcie-errors"),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "7x5 90x5", ""),
    ("node_infiniband_link_downed_total", "2x5 3x5", "infiniband-link-down"),
    ("node_infiniband_state_id", "4x5 1x5", "infiniband-link-down"),
    ("node_infiniband_state_id", "1x10", ""),
    ("node_boot_time_seconds", "1000x5 90000x5", "node-rebooted-by-metrics"),
    ("node_boot_time_seconds", "1000x5 1001x5", ""),
    ("node_vmstat_oom_kill", "0x5 1x5", "node-oom-kill"),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "1e9+1000x5 0+1000x5", "gpu-driver-reloaded"),
]


@pytest.mark.parametrize(("metric", "values", "rule"), SIGNS)
def test_what_one_node_shows_is_told_of_it(metric: str, values: str, rule: str) -> None:
    quiet = "4x10" if metric.endswith("state_id") else values.split("x", maxsplit=1)[0][:1] + "x10"
    found = judged(*on_each(metric, quiet, n2=values))
    expected = [(rule, ("node-2",))] if rule else []
    if values == "1x10" and rule:
        expected = [("gpu-row-remap-failure", (node,)) for node in WINDOW.allocation.nodes]
    assert [(one.rule, one.nodes) for one in found] == expected


def test_links_that_fail_on_most_nodes_are_no_nodes_fault() -> None:
    (found,) = judged(*on_each("node_infiniband_link_downed_total", "0x5 1x5", n4="0x10"))
    assert (found.nodes, found.remedy) == ((), Remedy.HOLD)
    assert "3 of the job's 4 nodes" in found.sentence


def test_a_link_that_fails_where_most_nodes_cannot_be_seen_names_none() -> None:
    (found,) = judged(series("node_infiniband_link_downed_total", "node-1", "mlx5_0", "0x5 1x5"))
    assert (found.nodes, found.role) == ((), Role.EITHER)
    assert "nothing is known of 3 more" in found.sentence


def test_errors_that_all_gpus_have_single_out_none() -> None:
    assert judged(*on_each("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "0+20x9")) == ()
    assert judged(series("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "node-1", "0", "0+20x9")) == ()


def test_a_gpu_that_vanishes_among_others_is_missed() -> None:
    metrics = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_TEMP")
    given = [
        series(metric, node, str(gpu), "50x5" if (node, gpu) == ("node-3", 2) else "50x20")
        for metric in metrics
        for node in WINDOW.allocation.nodes
        for gpu in range(4)
    ]
    (found,) = judged(*given)
    assert (found.rule, found.nodes, found.devices) == ("gpu-count-lower", ("node-3",), ("2",))
    assert found.role is Role.ROOT


def test_a_node_with_fewer_gpus_than_all_others_is_told_of_with_less_weight() -> None:
    metrics = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_TEMP")
    given = [
        series(metric, node, str(gpu), "50x20")
        for metric in metrics
        for node in WINDOW.allocation.nodes
        for gpu in range(3 if node == "node-3" else 4)
    ]
    (found,) = judged(*given)
    assert (found.rule, found.nodes, found.role) == ("gpu-count-lower", ("node-3",), Role.EITHER)
    one_series = [one for one in given if one.metric == metrics[0]]
    assert judged(*one_series) == ()


def test_values_that_are_no_numbers_say_nothing() -> None:
    hostile = (float("nan"), float("inf"), float("-inf"), 1e300, -1e300, 0.0)
    samples = tuple(
        Sample(at=from_unix(30 * number), value=value) for number, value in enumerate(hostile * 4)
    )
    names = {"", *(name for one in WANTED for name in one.names)}
    given = [
        Series(metric=name, node=node, device="0", samples=samples)
        for name in sorted(names)
        for node in ("node-1", "nowhere", "")
    ]
    sight = Sight(source="site", since=EPOCH, until=UNTIL, series=tuple(given))
    for one in (*judge(sight, WINDOW), *judge(sight, IN_TROUBLE)):
        assert set(one.nodes) <= {"node-1"}
        assert len(one.sentence) + sum(len(told.text) for told in one.evidence) < 2_000
