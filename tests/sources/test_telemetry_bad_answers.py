"""A metrics server that fails, lies or floods: nothing is blamed, nothing is taken for well."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from relight.clients.prometheus import MetricsServer
from relight.model.evidence import Evidence, Window
from relight.model.instants import from_unix
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.sources.telemetry import TelemetrySource

END = 1_700_000_000
UTIL = "DCGM_FI_DEV_GPU_UTIL"
NODES = ("n1", "n2", "n3", "n4")
Reply = Callable[[dict[str, str]], tuple[int, bytes]]


@contextlib.contextmanager
def serving(reply: Reply) -> Iterator[str]:
    """Answer each query on the loopback as ``reply`` does, given its fields."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, body = reply({name: values[0] for name, values in parse_qs(asked).items()})
            with contextlib.suppress(OSError):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(kind: str, rows: Sequence[object], **extra: object) -> tuple[int, bytes]:
    data = {"resultType": kind, "result": rows}
    return 200, json.dumps({"status": "success", "data": data, **extra}).encode()


def window(count: int = 4) -> Window:
    return Window(
        attempt=AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0),
        allocation=Allocation(nodes=tuple(f"n{number}" for number in range(1, count + 1))),
        since=from_unix(END - 900),
        until=from_unix(END),
        silent_since=from_unix(END - 300),
    )


def look(url: str, *, timeout: float = 2.0, patience: float = 5.0, nodes: int = 4) -> Evidence:
    server = MetricsServer(url, timeout=timeout)
    labels = ("Hostname", "instance")
    return TelemetrySource("dcgm", server, labels, patience=patience).look(window(nodes))


def healthy(fields: dict[str, str], until: dict[str, int] | None = None) -> tuple[int, bytes]:
    """Answer as a server would that has one series of two GPUs on each of four nodes."""
    query = fields["query"]
    if query.startswith("count by"):
        rows = [{"metric": {"__name__": UTIL, "Hostname": node}, "value": [END, "2"]}
                for node in NODES]  # fmt: skip
        return answer("vector", rows if "Hostname=~" in query else [])
    ends = dict.fromkeys(NODES, END) | (until or {})
    rows = [{"metric": {"__name__": UTIL, "Hostname": node, "gpu": gpu},
             "values": [[at, "100"] for at in range(END - 900, ends[node] + 1, 15)]}
            for node in ends for gpu in "01"]  # fmt: skip
    return answer("matrix", rows)


def test_the_pretend_server_is_believed_when_all_is_as_it_should_be() -> None:
    with serving(healthy) as url:
        assert look(url).unseen == ""
    with serving(lambda fields: healthy(fields, {"n2": END - 300})) as url:
        assert [one.rule for one in look(url).findings] == ["telemetry-gone"]


@pytest.mark.parametrize("extra", [{"warnings": ["a store did not answer"]}, {"isPartial": True}])
def test_a_gap_in_an_answer_in_part_blames_nobody(extra: dict[str, object]) -> None:
    def reply(fields: dict[str, str]) -> tuple[int, bytes]:
        status, body = healthy(fields, {"n2": END - 300})
        return status, json.dumps(json.loads(body) | extra).encode()

    with serving(reply) as url:
        evidence = look(url)
    assert evidence.findings == ()
    assert "nothing is concluded from what is missing" in " ".join(evidence.blind)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>Sign in</html>"),
        (200, b'{"status":"success","data":{"resultType":"vector","resu'),
        (200, b""),
        (500, b"oops"),
        (400, b'{"status":"error","errorType":"bad_data","error":"x"}'),
        (401, b""),
        (200, b'{"status":"success","data":{"resultType":"vector","result":[]}}'),
    ],
)
def test_a_server_without_a_usable_answer_is_unseen_and_blames_nobody(
    status: int, body: bytes
) -> None:
    with serving(lambda _: (status, body)) as url:
        evidence = look(url)
    assert evidence.findings == ()
    assert evidence.unseen.startswith("Metrics server dcgm: ")
    assert evidence.unseen.endswith(".")


def test_a_server_that_is_down_is_unseen() -> None:
    evidence = look("http://127.0.0.1:1")
    assert (evidence.findings, evidence.unseen[:19]) == ((), "Metrics server dcgm")


def test_a_server_that_takes_its_time_is_given_up_when_patience_ends() -> None:
    def reply(fields: dict[str, str]) -> tuple[int, bytes]:
        time.sleep(0.4)
        return healthy(fields)

    with serving(reply) as url:
        started = time.monotonic()
        evidence = look(url, patience=1.0)
        assert time.monotonic() - started < 2.0
    assert evidence.findings == ()
    assert "within 1 s" in evidence.unseen or evidence.blind


def test_values_that_are_no_numbers_leave_nothing_to_conclude() -> None:
    def reply(fields: dict[str, str]) -> tuple[int, bytes]:
        status, body = healthy(fields)
        return status, body.replace(b'"100"', b'"NaN"')

    with serving(reply) as url:
        evidence = look(url)
    assert evidence.findings == ()
    assert evidence.unseen != ""


def test_series_that_nobody_asked_for_are_dropped() -> None:
    def reply(fields: dict[str, str]) -> tuple[int, bytes]:
        status, body = healthy(fields)
        if b'"values"' not in body:
            return status, body
        told = json.loads(body)
        strange = [
            {"metric": {"__name__": UTIL, "Hostname": "n9", "gpu": "0"}},
            {"metric": {"__name__": "evil", "Hostname": "n1"}},
            {"metric": {"Hostname": "n1"}},
            {"metric": {"__name__": UTIL, "instance": "n1"}},
        ]
        told["data"]["result"] += [row | {"values": [[END, "79"]]} for row in strange]
        return status, json.dumps(told).encode()

    with serving(reply) as url:
        source = TelemetrySource("dcgm", MetricsServer(url), ("Hostname", "instance"))
        sight = source.sight(window())
    assert {(one.metric, one.node) for one in sight.series} == {(UTIL, node) for node in NODES}
    assert all(one.samples[-1].value == 100 for one in sight.series)


def test_an_answer_that_is_too_large_is_asked_for_in_halves() -> None:
    asked: list[int] = []

    def reply(fields: dict[str, str]) -> tuple[int, bytes]:
        nodes = re.findall(r"(n\d+)\(", fields["query"])
        kind = "vector" if fields["query"].startswith("count by") else "matrix"
        if kind == "vector":
            rows: list[object] = [
                {"metric": {"__name__": UTIL, "Hostname": node}, "value": [END, "1"]}
                for node in nodes
            ]
            return answer(kind, rows if "Hostname=~" in fields["query"] else [])
        if "start" in fields:
            asked.append(len(nodes))
        if len(nodes) > 30:
            return 200, b'{"status":"success","data":{"resultType":"matrix","result":[' + (
                b"{}," * 100_001
            ) + b"{}]}}"
        rows = [{"metric": {"__name__": UTIL, "Hostname": node, "gpu": "0"},
                 "values": [[END - 15, "1"], [END, "1"]]} for node in nodes]  # fmt: skip
        return answer(kind, rows)

    with serving(reply) as url:
        source = TelemetrySource("dcgm", MetricsServer(url), ("Hostname",))
        sight = source.sight(window(100))
    assert len({one.node for one in sight.series}) == 100
    assert asked == [100, 50, 25, 25, 50, 25, 25]


PROBE = """
import resource, sys, time
from relight.clients.prometheus import MetricsServer
from relight.model.evidence import Window
from relight.model.instants import from_unix
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.sources.telemetry import TelemetrySource
END = 1_700_000_000
nodes = tuple(f"n{n:04d}" for n in range(int(sys.argv[2])))
window = Window(attempt=AttemptKey(job=JobKey(cluster="m", scheduler_id="7"), attempt=0),
    allocation=Allocation(nodes=nodes), since=from_unix(END - 900), until=from_unix(END))
source = TelemetrySource("dcgm", MetricsServer(sys.argv[1], timeout=5.0), ("Hostname",))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.monotonic()
sight = source.sight(window)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // 1024, round(time.monotonic() - started, 1), len(sight.series),
      sum(len(one.samples) for one in sight.series), bool(sight.unseen))
"""


def measured(reply: Reply, nodes: int) -> list[str]:
    with serving(reply) as url:
        done = subprocess.run(
            [sys.executable, "-c", PROBE, url, str(nodes)],
            capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
    return done.stdout.split()


def test_a_flood_of_a_million_series_is_unseen_within_bounds() -> None:
    piece = b'{"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL","Hostname":"n0000"},"value":[1,"1"]},'
    head = b'{"status":"success","data":{"resultType":"vector","result":['
    body = head + piece * 1_000_000 + b"{}]}}"
    grown, took, series, _, is_unseen = measured(lambda _: (200, body), 4)
    assert (series, is_unseen) == ("0", "True")
    assert int(grown) < 250, "MiB"
    assert float(took) < 16.0
