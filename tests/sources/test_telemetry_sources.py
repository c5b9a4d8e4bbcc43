"""What a source tells of an attempt's nodes, by a real Prometheus and a real VictoriaMetrics."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from relight.clients.prometheus import MetricsServer
from relight.daemon.clock import now
from relight.model.evidence import Window
from relight.model.instants import Instant, from_unix, in_seconds, seconds
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.telemetry import Series, Sight
from relight.rules.metrics import load_metric_rules
from relight.sources.telemetry import TelemetrySource, time_asked
from relight.testing.metrics import Prometheus, Told, VictoriaMetrics, steady, unavailable

DAY = 86_400
END = (int(in_seconds(now())) // DAY - 1) * DAY
TIMES = range(END - 1_800, END + 1, 15)
UNTIL = from_unix(END)
GONE_AT = END - 240
LABELS = ("Hostname", "hostname", "node", "nodename", "instance")
ATTEMPT = AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0)
NODES = ("gpu-01", "gpu-02", "gpu-03", "gpu-04")
UTIL = "DCGM_FI_DEV_GPU_UTIL"


def gpus(node: str, value: float, times: range, **labels: str) -> Iterator[Told]:
    for gpu in ("0", "1"):
        yield steady(UTIL, value, times, Hostname=node, gpu=gpu, UUID=f"GPU-{node}-{gpu}", **labels)


def past() -> Iterator[Told]:
    target = "10.0.0.9:9400"
    yield from gpus("gpu-01", 100.0, TIMES, instance=target)
    yield from gpus("gpu-02.cluster.example", 100.0, TIMES, instance=target)
    yield from gpus("gpu-03", 100.0, range(END - 1_800, GONE_AT + 1, 15), instance=target)
    yield from gpus("gpu-04", 0.0, range(END - 1_800, END - 600, 15), hpc_job="6")
    yield from gpus("gpu-04", 90.0, range(END - 600, END + 1, 15), hpc_job="7")
    yield from gpus("gpu-99", 100.0, TIMES)
    yield from gpus("gpu-01b", 100.0, TIMES)
    for node in NODES:
        slow = range(END - 1_800, (GONE_AT - 180 if node == "gpu-03" else END) + 1, 60)
        yield steady("node_boot_time_seconds", 1.0, slow, instance=f"{node}:9100")
        for cpu, mode, value in (("0", "iowait", 3.0), ("1", "iowait", 4.0), ("0", "idle", 9.0)):
            labels = {"cpu": cpu, "mode": mode, "instance": f"{node}:9100"}
            yield steady("node_cpu_seconds_total", value, slow, **labels)
    yield steady("node_infiniband_link_downed_total", 0.0, TIMES,
                 instance="gpu-01:9100", device="mlx5_0", port="1")  # fmt: skip
    yield steady("DCGM_EXP_XID_ERRORS_COUNT", 1.0, TIMES, Hostname="gpu-01", gpu="0", xid="79")
    yield steady("DCGM_FI_DEV_SM_CLOCK", float("nan"), TIMES, Hostname="gpu-01", gpu="0")
    yield steady("DCGM_FI_DEV_GPU_TEMP", 50.0, TIMES, Hostname="gpu-01.east", gpu="0")
    yield steady("DCGM_FI_DEV_GPU_TEMP", 99.0, TIMES, Hostname="gpu-01.west", gpu="0")


def window(nodes: tuple[str, ...] = NODES, silent_since: Instant | None = None) -> Window:
    return Window(
        attempt=ATTEMPT,
        allocation=Allocation(nodes=nodes),
        since=from_unix(END - (900 if silent_since is None else 3_600)),
        until=UNTIL,
        silent_since=silent_since,
    )


@pytest.fixture(scope="module", params=[Prometheus, VictoriaMetrics])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if (why := unavailable()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no metrics server: {why}")
        pytest.skip(f"no metrics server: {why}")
    kind: type[Prometheus | VictoriaMetrics] = request.param
    with kind.start(tmp_path_factory.mktemp("server"), past=past()) as started:
        yield started.url


@pytest.fixture(scope="module")
def sight(url: str) -> Sight:
    return source(url).sight(window())


def source(url: str, labels: tuple[str, ...] = LABELS) -> TelemetrySource:
    return TelemetrySource("dcgm", MetricsServer(url), labels)


def of(sight: Sight, metric: str, node: str) -> list[Series]:
    found = (one for one in sight.series if one.metric == metric and one.node == node)
    return sorted(found, key=lambda one: one.device)


def test_each_node_is_seen_under_the_schedulers_own_name(sight: Sight) -> None:
    assert sight.unseen == ""
    assert {one.node for one in sight.series} == set(NODES)
    assert [one.device for one in of(sight, UTIL, "gpu-02")] == ["0", "1"]


def test_a_node_outside_the_allocation_is_left_out(url: str) -> None:
    seen = source(url).sight(window(("gpu-01",)))
    assert {one.node for one in seen.series} == {"gpu-01"}


def test_samples_lie_in_the_time_asked_at_the_interval_that_was_learnt(sight: Sight) -> None:
    assert (sight.since, sight.until) == (from_unix(END - 900), UNTIL)
    series = of(sight, UTIL, "gpu-01")[0]
    times = [one.at for one in series.samples]
    assert times[0] == sight.since
    assert times[-1] == UNTIL
    assert {later - before for before, later in pairwise(times)} == {seconds(15)}
    assert sight.interval == 60, "the longest of the exporters' own"


def test_an_exporter_that_is_scraped_seldom_has_no_gaps(sight: Sight) -> None:
    (boot,) = of(sight, "node_boot_time_seconds", "gpu-02")
    assert len(boot.samples) == 16


def test_a_series_that_stopped_stops_here_too(sight: Sight) -> None:
    last = of(sight, UTIL, "gpu-03")[0].samples[-1].at
    assert from_unix(GONE_AT) <= last <= from_unix(GONE_AT + 30)


def test_a_series_whose_labels_changed_goes_on(sight: Sight) -> None:
    series = of(sight, UTIL, "gpu-04")
    assert [one.device for one in series] == ["0", "1"]
    values = [one.value for one in series[0].samples]
    assert values == [0.0] * 20 + [90.0] * 41
    assert series[0].labels["hpc_job"] == "7"


def test_processors_are_summed_up_and_other_modes_left_out(sight: Sight) -> None:
    (series,) = of(sight, "node_cpu_seconds_total", "gpu-01")
    assert (series.device, series.samples[-1].value) == ("", 7.0)


@pytest.mark.parametrize(
    ("metric", "device"),
    [
        ("node_infiniband_link_downed_total", "mlx5_0/1"),
        ("DCGM_EXP_XID_ERRORS_COUNT", "0/79"),
        ("node_boot_time_seconds", ""),
    ],
)
def test_a_device_is_told_apart_on_its_node(sight: Sight, metric: str, device: str) -> None:
    assert [one.device for one in of(sight, metric, "gpu-01")] == [device]


def test_a_series_of_no_numbers_is_no_series(sight: Sight) -> None:
    assert of(sight, "DCGM_FI_DEV_SM_CLOCK", "gpu-01") == []


def test_two_machines_of_one_short_name_are_not_taken_for_the_node(sight: Sight) -> None:
    assert of(sight, "DCGM_FI_DEV_GPU_TEMP", "gpu-01") == []


def test_what_cannot_be_told_is_said_with_what_to_do(sight: Sight) -> None:
    (throttled,) = [one for one in sight.blind if "CLOCK_THROTTLE_REASONS" in one]
    assert throttled.endswith("switch it on in dcgm-exporter's counters file.")
    assert not [one for one in sight.blind if one.startswith(f"No {UTIL}")]


def test_the_label_that_would_name_the_nodes_is_told(url: str) -> None:
    evidence = source(url, ("nosuch",)).look(window(("gpu-01",)))
    assert evidence.findings == ()
    assert "the label Hostname" in evidence.unseen
    assert "add it to node_labels" in evidence.unseen
    assert "no series" not in evidence.unseen


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (("instance",), "instance is '10.0.0.9:9400'"),
        (("nosuch",), "(no series has them)"),
    ],
)
def test_a_wrong_label_is_named_with_what_it_holds(
    url: str, labels: tuple[str, ...], words: str
) -> None:
    names = ("host-1", "host-2")
    evidence = source(url, labels).look(window(names))
    assert evidence.findings == ()
    assert "names host-[1-2]" in evidence.unseen
    assert words in evidence.unseen
    assert "node_labels" in evidence.unseen


def test_a_node_without_any_series_is_said_and_not_blamed(url: str) -> None:
    evidence = source(url).look(window((*NODES, "gpu-05")))
    assert "No series name gpu-05: nothing can be told of them." in evidence.blind
    assert not [one for one in evidence.findings if "gpu-05" in one.nodes]


def test_a_node_whose_series_stopped_while_its_peers_go_on_is_found(url: str) -> None:
    peers = ("gpu-02", "gpu-03", "gpu-04")
    evidence = source(url).look(window(peers, silent_since=from_unix(GONE_AT)))
    gone = [one for one in evidence.findings if one.rule == "telemetry-gone"]
    assert [one.nodes for one in gone] == [("gpu-03",)]


def test_a_survey_tells_which_nodes_are_known_and_by_which_labels(url: str) -> None:
    seen = source(url).survey((*NODES, "gpu-05"), UNTIL)
    assert seen.unseen == ""
    assert seen.known == frozenset(NODES)
    assert set(seen.labels) == {"Hostname", "instance"}
    assert UTIL in seen.metrics
    assert seen.interval == 60


def test_a_survey_of_many_nodes_asks_for_all_of_them(url: str) -> None:
    many = tuple(f"other-{number:04d}" for number in range(300))
    seen = source(url).survey((NODES[0], *many, *NODES[1:]), UNTIL)
    assert seen.known == frozenset(NODES)
    assert len(seen.asked) == 304


def test_an_ended_attempt_is_not_asked_about_long_after_its_end() -> None:
    late = msgspec.structs.replace(window(), until=from_unix(END + 7_200))
    assert time_asked(late) == (from_unix(END - 900), UNTIL)


def test_nothing_is_asked_about_no_node(url: str) -> None:
    assert source(url).look(window(())).unseen.endswith("There is no node or no time to ask about.")
    assert source(url).survey((), UNTIL).unseen == ""


@pytest.mark.parametrize(
    ("silent_since", "since"),
    [
        (None, END - 900),
        (from_unix(END - 100), END - 700),
        (from_unix(END - 2_000), END - 2_600),
        (from_unix(END - 3_500), END - 3_600),
    ],
)
def test_the_time_asked_begins_ten_minutes_before_the_trouble(
    silent_since: Instant | None, since: int
) -> None:
    assert time_asked(window(silent_since=silent_since)) == (from_unix(since), UNTIL)


RULE = """
[[metric_rule]]
id = "site-gpu-busy"
family = "gpu_hw_exception"
kind = "node"
role = "root"
domain = "hardware"
remedy = "restart_excluding_node"
title = "A GPU is busy"
expr = 'EXPR'
device_label = "gpu"
above = 95
for = 3
sentence = "GPU {device} of {node} is busy."
evidence = "the site's own pumps"
why = "It shows that a rule of the site is asked."

[[metric_rule.test]]
what = "busy"
series = [{ labels = { node = "n1", gpu = "0" }, values = "100x5" }]
names = ["n1"]

[[metric_rule.test]]
what = "idle"
series = [{ labels = { node = "n1", gpu = "0" }, values = "0x5" }]
"""


def with_rule(url: str, folder: Path, expr: str) -> TelemetrySource:
    (folder / "site.toml").write_text(RULE.replace("EXPR", expr))
    rules = tuple(one for one in load_metric_rules([folder]) if one.id == "site-gpu-busy")
    return TelemetrySource("dcgm", MetricsServer(url), LABELS, rules=rules)


def test_a_rule_of_the_site_is_asked_and_foreign_nodes_are_dropped(
    url: str, tmp_path: Path
) -> None:
    evidence = with_rule(url, tmp_path, UTIL).look(window())
    found = [one for one in evidence.findings if one.rule == "site-gpu-busy"]
    assert {node for one in found for node in one.nodes} == {"gpu-01", "gpu-02", "gpu-03"}


def test_a_rule_alone_can_tell_where_nothing_else_is_known(url: str, tmp_path: Path) -> None:
    evidence = with_rule(url, tmp_path, UTIL).look(window(("gpu-99",)))
    assert evidence.unseen == ""
    assert {node for one in evidence.findings for node in one.nodes} == {"gpu-99"}


def test_a_rule_that_the_server_does_not_take_is_named(url: str, tmp_path: Path) -> None:
    broken = with_rule(url, tmp_path, "no_such_function(up)")
    evidence = broken.look(window())
    assert [one for one in evidence.blind if one.startswith("The rule site-gpu-busy could not")]
    assert evidence.unseen == ""
    assert len(broken.try_rules(UNTIL)) == 1
    assert with_rule(url, tmp_path, UTIL).try_rules(UNTIL) == ()
