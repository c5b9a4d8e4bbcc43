"""The same questions to a real Prometheus and a real VictoriaMetrics, with the same answers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relight.clients.prometheus import MetricsServer, QueryRefused, ServerUnreachable
from relight.daemon.clock import now
from relight.model.instants import Instant, from_unix, in_seconds
from relight.testing.metrics import (
    Exporter,
    Prometheus,
    Told,
    VictoriaMetrics,
    steady,
    unavailable,
)

DAY = 86_400
END = (int(in_seconds(now())) // DAY - 1) * DAY
"""Midnight of yesterday, so that no sample is of the future and none is too old to be kept."""
TIMES = range(END - 900, END + 1, 15)
UNTIL = from_unix(END)
SINCE = from_unix(END - 900)
PAST = (
    steady("DCGM_FI_DEV_GPU_UTIL", 100.0, TIMES, Hostname="n1", gpu="0"),
    steady("DCGM_FI_DEV_GPU_UTIL", 0.0, TIMES[:30], Hostname="n2", gpu="0"),
    Told("odd", {}, ((END - 30, float("nan")), (END - 15, float("inf")), (END, 4.0))),
)


def installed() -> None:
    if (why := unavailable()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no metrics server: {why}")
        pytest.skip(f"no metrics server: {why}")


@pytest.fixture(scope="module", params=[Prometheus, VictoriaMetrics])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MetricsServer]:
    installed()
    kind: type[Prometheus | VictoriaMetrics] = request.param
    with kind.start(tmp_path_factory.mktemp("server"), past=PAST) as started:
        yield MetricsServer(started.url)


def test_a_vector_holds_names_labels_and_values(server: MetricsServer) -> None:
    (only,) = server.instant('DCGM_FI_DEV_GPU_UTIL{Hostname="n1"}', UNTIL).rows
    assert (only.metric, only.labels["gpu"]) == ("DCGM_FI_DEV_GPU_UTIL", "0")
    assert [(one.at, one.value) for one in only.samples] == [(UNTIL, 100.0)]


def test_a_range_in_brackets_gives_the_samples_as_they_were_scraped(server: MetricsServer) -> None:
    (only,) = server.instant('DCGM_FI_DEV_GPU_UTIL{Hostname="n1"}[61s]', UNTIL).rows
    assert [in_seconds(one.at) - END for one in only.samples] == [-60, -45, -30, -15, 0]


def test_a_value_that_is_kept_for_two_scrapes_ends_where_the_series_ends(
    server: MetricsServer,
) -> None:
    query = 'last_over_time({__name__=~"DCGM_FI_DEV_GPU_UTIL|other",Hostname=~"n1|n2"}[30s])'
    rows = server.range(query, SINCE, UNTIL, step=15).rows
    last = {row.labels["Hostname"]: in_seconds(row.samples[-1].at) - END for row in rows}
    assert last["n1"] == 0
    assert TIMES[29] - END <= last["n2"] <= TIMES[29] - END + 30
    assert {row.metric for row in rows} == {"DCGM_FI_DEV_GPU_UTIL"}


def test_what_is_no_number_is_left_out(server: MetricsServer) -> None:
    (only,) = server.instant("odd[60s]", UNTIL).rows
    assert [one.value for one in only.samples] == [4.0]


def test_what_is_not_there_is_an_empty_answer_and_no_error(server: MetricsServer) -> None:
    answer = server.instant("nothing_of_that_name", UNTIL)
    assert (answer.rows, answer.is_partial, answer.dropped) == ((), False, 0)


def test_a_query_that_is_wrong_is_refused_with_the_servers_words(server: MetricsServer) -> None:
    with pytest.raises(QueryRefused, match="does not understand the query"):
        server.instant("sum by (", UNTIL)


def test_a_long_time_at_a_short_step_is_asked_in_as_many_points_as_allowed(
    server: MetricsServer,
) -> None:
    since = Instant(UNTIL - 20 * DAY * 1_000_000)
    rows = server.range('DCGM_FI_DEV_GPU_UTIL{Hostname="n1"}', since, UNTIL, step=1).rows
    assert all(len(row.samples) <= 11_000 for row in rows)


def test_a_query_too_long_for_a_url_is_answered(server: MetricsServer) -> None:
    nodes = "|".join(f"node-{n:04d}" for n in range(1_500))
    assert len(nodes) > 12_000
    rows = server.instant(f'DCGM_FI_DEV_GPU_UTIL{{Hostname=~"n1|{nodes}"}}', UNTIL).rows
    assert [row.labels["Hostname"] for row in rows] == ["n1"]


def test_a_server_that_is_killed_is_told_and_one_that_is_back_answers(tmp_path: Path) -> None:
    installed()
    with VictoriaMetrics.start(tmp_path, past=PAST) as started:
        client = MetricsServer(started.url)
        assert client.instant('DCGM_FI_DEV_GPU_UTIL{Hostname="n1"}', UNTIL).rows
        started.stop()
        with pytest.raises(ServerUnreachable, match="no server answers"):
            client.instant("up", UNTIL)


def test_prometheus_scrapes_what_an_exporter_says(tmp_path: Path) -> None:
    installed()
    with (
        Exporter('DCGM_FI_DEV_XID_ERRORS{gpu="3"} 79\n') as exporter,
        Prometheus.start(tmp_path, targets={"gpus": [exporter.address]}) as started,
    ):
        client = MetricsServer(started.url)
        deadline = time.monotonic() + 15
        while not (rows := client.instant("DCGM_FI_DEV_XID_ERRORS", now()).rows):
            assert time.monotonic() < deadline, "nothing was scraped"
            time.sleep(0.2)
    assert rows[0].samples[0].value == 79
    assert rows[0].labels["instance"] == exporter.address
