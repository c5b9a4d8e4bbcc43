"""Who is slower than its peers, and what blames nobody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.evidence import Window
from relight.model.findings import Domain, Finding, Kind, Remedy
from relight.model.instants import EPOCH, from_unix, seconds
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.telemetry import Series, Sight
from relight.perception.telemetry.judging import judge
from relight.perception.telemetry.peers import Peers
from relight.perception.telemetry.scenes import lay_out
from relight.perception.telemetry.wanted import WANTED
from relight.rules.metrics.judging import instants
from relight.rules.metrics.notation import read_series

UTIL, CLOCK = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_SM_CLOCK"
POWER, HEAT = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP"
REASONS, WIDTH = "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_PCIE_LINK_WIDTH"
THERMAL, SYMBOLS = "DCGM_FI_DEV_THERMAL_VIOLATION", "node_infiniband_symbol_error_total"
NODES = ("node-1", "node-2", "node-3", "node-4")
WINDOW = Window(
    attempt=AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0),
    allocation=Allocation(nodes=NODES),
    since=EPOCH,
    until=from_unix(900),
    slow_since=from_unix(600),
)
WELL = {
    UTIL: "98x29",
    CLOCK: "1980x29",
    POWER: "640x29",
    HEAT: "62x29",
    REASONS: "4x29",
    WIDTH: "16x29",
    THERMAL: "0x29",
    SYMBOLS: "3x29",
}


def job(gpus: int = 8, nodes: Iterable[str] = NODES, **odd: Mapping[str, str]) -> list[Series]:
    """Return nodes of GPUs that are all well, but for ``odd``: ``n2g3`` or ``n2``."""
    found = []
    for node in nodes:
        for gpu in range(gpus):
            own = odd.get(f"n{node[-1]}g{gpu}", odd.get(f"n{node[-1]}", {}))
            found += [
                Series(
                    metric=metric,
                    node=node,
                    device=str(gpu),
                    samples=instants(EPOCH, seconds(30), read_series(values)),
                )
                for metric, values in {**WELL, **own}.items()
            ]
    return found


def judged(series: Iterable[Series], window: Window = WINDOW) -> tuple[Finding, ...]:
    sight = Sight(source="site", since=EPOCH, until=window.until, series=tuple(series))
    return judge(sight, window)


ODD = [
    pytest.param({CLOCK: "1980x19 1155x9"}, "gpu-clock-low", id="clock"),
    pytest.param({REASONS: "4x19 0x48x9".replace("0x48", "72")}, "gpu-throttled", id="reasons"),
    pytest.param({THERMAL: "0x19 0+20000000000x9"}, "gpu-throttled", id="time throttled"),
    pytest.param({POWER: "640x19 400x9"}, "gpu-power-low", id="power"),
    pytest.param({HEAT: "62x19 88x9", CLOCK: "1980x19 1860x9"}, "gpu-hot", id="heat"),
    pytest.param({WIDTH: "16x19 8x9"}, "pcie-narrow", id="width"),
    pytest.param({SYMBOLS: "3x19 3+40x9"}, "link-errors-rising", id="symbol errors"),
]


@pytest.mark.parametrize(("odd", "rule"), ODD)
def test_one_that_stands_apart_is_named(odd: dict[str, str], rule: str) -> None:
    found = [one for one in judged(job(n3g2=odd)) if one.kind is Kind.SLOW]
    assert [(one.rule, one.nodes, one.devices) for one in found] == [(rule, ("node-3",), ("2",))]
    assert found[0].remedy is Remedy.RESTART_EXCLUDING_NODE
    assert found[0].domain is Domain.HARDWARE


@pytest.mark.parametrize(("odd", "rule"), ODD)
def test_a_whole_node_that_stands_apart_is_named_once(odd: dict[str, str], rule: str) -> None:
    found = [one for one in judged(job(n3=odd)) if one.kind is Kind.SLOW]
    assert [(one.rule, one.nodes) for one in found] == [(rule, ("node-3",))]


@pytest.mark.parametrize(("odd", "rule"), ODD)
def test_what_all_nodes_share_blames_none(odd: dict[str, str], rule: str) -> None:
    assert not judged(job(n1=odd, n2=odd, n3=odd, n4=odd)), rule


def test_one_gpu_of_the_only_node_is_held_against_its_neighbours() -> None:
    window = msgspec.structs.replace(WINDOW, allocation=Allocation(nodes=("node-1",)))
    (found,) = judged(job(nodes=("node-1",), n1g7={CLOCK: "1980x19 1155x9"}), window)
    assert (found.rule, found.devices) == ("gpu-clock-low", ("7",))


def test_two_nodes_with_one_gpu_each_are_enough() -> None:
    window = msgspec.structs.replace(WINDOW, allocation=Allocation(nodes=NODES[:2]))
    (found,) = judged(job(1, NODES[:2], n2={CLOCK: "1980x19 1155x9"}), window)
    assert found.nodes == ("node-2",)


def test_its_words_give_the_samples() -> None:
    (found,) = judged(job(n3g2={CLOCK: "1980x19 1155x9"}))
    assert found.sentence == "GPU 2 of node-3 runs at a lower clock than its peers."
    assert found.evidence[0].text == (
        "GPU 2 of node-3: SM clock 1,155 MHz, median of 24 others 1,980 MHz, over 10 scrapes"
    )
    assert found.fingerprint == "gpu-clock-low"


NOBODY = [
    pytest.param({CLOCK: "1980x19 1900x9"}, id="a clock a little lower"),
    pytest.param({CLOCK: "1980x19 1155 1980x8"}, id="one scrape"),
    pytest.param({CLOCK: "1980x19 345x9", UTIL: "98x19 0x9"}, id="a GPU at rest"),
    pytest.param({REASONS: "4x19 5x9"}, id="power cap and idleness"),
    pytest.param({HEAT: "62x19 88x9"}, id="hot and just as fast"),
    pytest.param({POWER: "640x19 400x9", UTIL: "98x19 60x9"}, id="less power with less to do"),
    pytest.param({SYMBOLS: "3x24 900x4"}, id="errors in one scrape only"),
    pytest.param({CLOCK: "0x29"}, id="a clock of nought, which is none"),
    pytest.param({REASONS: "4x19 72x3 4x5"}, id="throttled for less than half of the time"),
    pytest.param({THERMAL: "0+2000000000x19 0x9"}, id="a counter that was reset"),
]


AS_EVER = [
    pytest.param({CLOCK: "1410x29"}, id="clock"),
    pytest.param({CLOCK: "1410x19 1350x9"}, id="a clock that was low and fell a little"),
    pytest.param({REASONS: "72x29"}, id="reasons"),
    pytest.param({THERMAL: "0+20000000000x28"}, id="time throttled"),
    pytest.param({POWER: "400x29"}, id="power"),
    pytest.param({HEAT: "88x29", CLOCK: "1860x29"}, id="heat"),
    pytest.param({WIDTH: "8x29"}, id="width"),
    pytest.param({SYMBOLS: "3+40x28"}, id="symbol errors"),
]


@pytest.mark.parametrize("odd", AS_EVER)
def test_what_was_so_before_does_not_explain_a_change(odd: dict[str, str]) -> None:
    assert judged(job(n3g2=odd)) == ()


def test_where_it_was_slow_from_its_start_on_only_the_hardwares_own_word_counts() -> None:
    window = msgspec.structs.replace(WINDOW, started_at=WINDOW.slow_since)
    low = {CLOCK: "1410x29", WIDTH: "8x29", SYMBOLS: "3+40x28", THERMAL: "0+20000000000x28"}
    assert judged(job(n3g2=low), window) == ()
    (found,) = judged(job(n3g2={**low, REASONS: "72x29"}), window)
    assert (found.rule, found.nodes) == ("gpu-throttled", ("node-3",))


def test_one_that_falls_from_a_level_of_its_own_is_named() -> None:
    (found,) = judged(job(n3={CLOCK: "1410x19 1100x9"}))
    assert found.sentence == (
        "GPUs 0, 1, 2, 3, 4, 5, 6 and 7 of node-3 run at a lower clock than their peers."
    )


@pytest.mark.parametrize("odd", NOBODY)
def test_what_is_no_fault_is_not_told(odd: dict[str, str]) -> None:
    assert judged(job(n3g2=odd)) == ()


def test_half_of_the_nodes_are_two_kinds_and_no_fault() -> None:
    slow = {CLOCK: "1980x19 1155x9"}
    assert judged(job(n1=slow, n2=slow)) == ()


def test_odd_gpus_on_most_nodes_are_no_single_nodes_fault() -> None:
    slow = {CLOCK: "1980x19 1155x9"}
    assert {node for one in judged(job(n1g0=slow, n2g0=slow)) for node in one.nodes} == {
        "node-1",
        "node-2",
    }
    assert judged(job(n1g0=slow, n2g0=slow, n3g0=slow)) == ()


def test_two_scrapes_are_not_believed() -> None:
    window = msgspec.structs.replace(WINDOW, slow_since=from_unix(810))
    assert judged(job(n3={CLOCK: "1980x26 1155x2"}), window)
    assert judged(job(n3={CLOCK: "1980x27 1155x1"}), window) == ()


def test_a_peer_that_is_not_seen_counts_as_one_that_is_alike() -> None:
    scene = lay_out(Sight(source="site", since=EPOCH, until=WINDOW.until), WINDOW)
    clock = next(one for one in WANTED if one.name == CLOCK)
    slow, quick = ("node-1", "0"), ("node-2", "0")
    seen = Peers(scene, clock, {slow: 1155.0, quick: 1980.0})
    assert not seen.are_above(slow, 1500)
    assert not seen.is_off(slow)
    every = Peers(scene, clock, {slow: 1155.0, **dict.fromkeys(product(NODES[1:], "0"), 1980.0)})
    assert every.are_above(slow, 1500)
    assert every.is_off(slow)
    assert every.are_below(quick, 2000)
    assert not every.is_off(quick)


def test_nobody_is_compared_with_peers_that_are_not_seen() -> None:
    series = job(n3={CLOCK: "1980x19 1155x9"})
    seen = [one for one in series if one.metric != CLOCK or one.node in ("node-3", "node-1")]
    assert judged(seen) == ()


def test_without_a_slow_stretch_nobody_is_compared() -> None:
    window = msgspec.structs.replace(WINDOW, slow_since=None)
    assert judged(job(n3={CLOCK: "1155x29"}), window) == ()


def waits(values: str, mode: str = "iowait") -> list[Series]:
    return [
        Series(
            metric="node_cpu_seconds_total",
            node=node,
            labels={"mode": mode},
            samples=instants(EPOCH, seconds(30), read_series(values)),
        )
        for node in NODES
    ]


def test_nodes_that_all_wait_for_storage_name_none() -> None:
    (found,) = judged(waits("0+1x19 20+60x9"))
    assert (found.rule, found.nodes, found.domain) == ("storage-wait", (), Domain.STORAGE)
    assert found.remedy is Remedy.HOLD
    assert found.evidence[0].text == "node-1: 2 (before: 0.03) cores waiting"
    assert judged(waits("0+60x29")) == ()
    assert judged(waits("0+1x19 20+60x9")[:2]) == ()


slow_or_not = st.lists(
    st.sampled_from([{}, *({CLOCK: f"1980x19 {clock}x9"} for clock in (1155, 1500, 1790, 1960))]),
    min_size=4,
    max_size=4,
)


@given(slow_or_not, st.data())
def test_the_order_of_series_changes_nothing(
    odd: list[dict[str, str]], data: st.DataObject
) -> None:
    series = job(2, **{f"n{number}": own for number, own in enumerate(odd, 1)})
    order = data.draw(st.permutations(range(len(series))))
    assert judged(series[number] for number in order) == judged(series)


@given(slow_or_not, st.data())
def test_series_that_are_missing_never_create_a_blame(
    odd: list[dict[str, str]], data: st.DataObject
) -> None:
    series = job(2, **{f"n{number}g1": own for number, own in enumerate(odd, 1)})
    missing = data.draw(st.sets(st.integers(0, len(series) - 1), max_size=6))
    left = [one for number, one in enumerate(series) if number not in missing]
    blamed = {node for one in judged(series) for node in one.nodes}
    assert {node for one in judged(left) for node in one.nodes} <= blamed


@given(
    st.integers(1, 4),
    st.sampled_from([CLOCK, POWER, HEAT, WIDTH, UTIL]),
    st.floats(0.01, 100),
)
def test_a_change_that_all_gpus_share_blames_none(gpus: int, metric: str, factor: float) -> None:
    changed = {metric: f"{float(WELL[metric].partition('x')[0]) * factor:.6f}x29"}
    assert judged(job(gpus, n1=changed, n2=changed, n3=changed, n4=changed)) == ()
