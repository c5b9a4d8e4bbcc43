from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import create_connection, socket
from typing import Any

import msgspec
import pytest

from relight.clients.attribution.exchanges import LARGEST_ANSWER, Exchange
from relight.clients.attribution.nvrx import NvrxProtocol
from relight.clients.attribution.opinions import Asked, Opinion, ServiceFailed, Standing
from relight.clients.attribution.own_protocol import OwnProtocol, request_of
from relight.model.advice import Decision
from relight.model.evidence import Window
from relight.model.findings import Domain, Evidence, Kind, Remedy
from relight.model.instants import from_iso
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.questions import AttributionAsked
from relight.model.verdicts import Suspect, Verdict

EXAMPLE = Path(__file__).parents[2] / "examples" / "attribution_server.py"
JOB = JobKey(cluster="main", scheduler_id="7")
NODES = ("node-1", "node-2")
Answering = Callable[[str, dict[str, Any]], tuple[int, bytes]]


def question(*lines: str) -> Asked:
    verdict = Verdict(
        domain=Domain.UNKNOWN,
        cause="no-progress",
        family="hang",
        kind=Kind.HANG,
        remedy=Remedy.RESTART,
        sentence="no step was completed",
        suspects=(Suspect(node="node-1", share=1.0, why="it was idle"),),
        ranks=(3,),
        evidence=tuple(Evidence(text=line) for line in lines),
    )
    window = Window(
        attempt=AttemptKey(job=JOB, attempt=2),
        allocation=Allocation(nodes=NODES),
        since=from_iso("2026-01-01T00:00:00"),
        until=from_iso("2026-01-01T00:10:00"),
    )
    asked = AttributionAsked(job=JOB, attempt=2, ours=verdict, window=window, is_living=True)
    return Asked(question=asked, user="ada", log_path="/srv/logs/7.out")


@contextmanager
def serving(answer: Answering) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", "0"))
            self._answer(json.loads(self.rfile.read(size)))

        def do_GET(self) -> None:
            self._answer({"authorization": self.headers.get("Authorization")})

        def _answer(self, body: dict[str, Any]) -> None:
            status, content = answer(f"{self.command} {self.path}", body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - named by its base
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def own(url: str, timeout: float = 5.0, token_file: str = "") -> OwnProtocol:
    return OwnProtocol(Exchange(url, token_file=token_file, timeout=timeout), timeout)


@pytest.fixture
def example() -> Iterator[str]:
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, EXAMPLE, str(port)], stderr=subprocess.DEVNULL
    ) as process:
        for _ in range(200):
            try:
                create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
        process.terminate()


def test_the_example_server_blames_the_node_that_the_evidence_names(example: str) -> None:
    opinion = own(example).ask(question("node-2: CUDA error"))
    assert opinion.status is Standing.FINAL
    assert (opinion.domain, opinion.nodes) == (Domain.HARDWARE, ("node-2",))
    assert opinion.decision is Decision.RESTART_EXCLUDING_NODE


def test_the_example_server_has_no_opinion_where_no_line_names_a_node(example: str) -> None:
    assert own(example).ask(question("something")).status is Standing.NO_OPINION


def test_the_request_has_the_fields_of_nvidias_adapter() -> None:
    request = json.loads(msgspec.json.encode(request_of(question("x"), "", 5.0)))
    assert request == {
        "schema_version": "1",
        "workload_id": "main:7-2",
        "phase": "fast",
        "scope": {
            "nodes": ["node-1", "node-2"],
            "ranks": [3],
            "start_time": "2026-01-01T00:00:00.000000Z",
            "end_time": "2026-01-01T00:10:00.000000Z",
        },
        "failure_context": {
            "cause": "no-progress",
            "family": "hang",
            "domain": "unknown",
            "kind": "hang",
            "sentence": "no step was completed",
            "confidence": 0.0,
            "suspects": ["node-1"],
            "evidence": ["x"],
        },
        "workload_context": {"is_living": True, "log_path": "/srv/logs/7.out"},
        "timeout_ms": 5000,
        "user_id": "ada",
    }


def test_a_pending_answer_is_gone_on_with_by_its_session() -> None:
    seen: list[dict[str, Any]] = []

    def answer(_: str, body: dict[str, Any]) -> tuple[int, bytes]:
        seen.append(body)
        if len(seen) == 1:
            return 200, b'{"status": "pending", "session": "s1"}'
        return 200, b'{"status": "final", "decision": "stop", "confidence": 7, "more": [1]}'

    with serving(answer) as url:
        first = own(url).ask(question())
        second = own(url).ask(question(), first.session)
    assert (first.status, first.says_something) == (Standing.PENDING, False)
    assert (second.decision, second.confidence) == (Decision.STOP, 1.0)
    assert [one["phase"] for one in seen] == ["fast", "slow"]
    assert seen[1]["continue_session"] == "s1"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (500, b"down for repair", "answered 500: 'down for repair'"),
        (200, b"<html>", "answered what is no opinion"),
        (200, b'{"status": "perhaps"}', "answered what is no opinion"),
        (200, b"[" * 100_000, "answered what is no opinion"),
        (200, b"{}", "answered what is no opinion"),
        (200, b" " * (LARGEST_ANSWER + 1), "answered with more than"),
    ],
)
def test_an_answer_that_is_none_is_said(status: int, body: bytes, said: str) -> None:
    with serving(lambda *_: (status, body)) as url, pytest.raises(ServiceFailed, match=said):
        own(url).ask(question())


def test_a_service_that_is_down_or_too_slow_is_said() -> None:
    with pytest.raises(ServiceFailed, match="no server answers"):
        own("http://127.0.0.1:9").ask(question())

    def slow(*_: object) -> tuple[int, bytes]:
        time.sleep(1.0)
        return 200, b"{}"

    with serving(slow) as url, pytest.raises(ServiceFailed, match="did not answer fully"):
        own(url, timeout=0.2).ask(question())


def test_a_token_is_read_anew_for_each_request(tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(_: str, body: dict[str, Any]) -> tuple[int, bytes]:
        seen.append(body["authorization"])
        return 200, b'{"status": "no_opinion"}'

    token = tmp_path / "token"
    with serving(answer) as url:
        exchange = Exchange(url, token_file=str(token))
        with pytest.raises(ServiceFailed, match="token_file"):
            exchange.get("/", {}, Opinion)
        for text in ("one\n", "two"):
            token.write_text(text)
            exchange.get("/", {}, Opinion)
    assert seen == ["Bearer one", "Bearer two"]


@pytest.mark.parametrize(
    ("action", "status", "decision"),
    [
        ("STOP", Standing.FINAL, Decision.STOP),
        ("RESTART", Standing.FINAL, Decision.RESTART),
        ("CONTINUE", Standing.FINAL, Decision.NONE),
        ("UNKNOWN", Standing.NO_OPINION, None),
        ("TIMEOUT", Standing.NO_OPINION, None),
        ("SOMETHING NEW", Standing.NO_OPINION, None),
    ],
)
def test_nvrx_hands_the_log_in_once_and_looks_until_it_is_done(
    action: str, status: Standing, decision: Decision | None
) -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    def answer(request: str, body: dict[str, Any]) -> tuple[int, bytes]:
        seen.append((request, body))
        if request.startswith("POST"):
            return 200, b'{"submitted": true, "mode": "pending"}'
        if len(seen) == 2:
            return 200, b'{"status": "in_flight"}'
        told = {"action": action, "reason": "why", "source": "log_analyzer"}
        return 200, json.dumps({"status": "completed", "recommendation": told}).encode()

    with serving(answer) as url:
        service = NvrxProtocol(Exchange(url))
        first = service.ask(question())
        second = service.ask(question(), first.session)
    assert first.status is Standing.PENDING
    assert (second.status, second.decision) == (status, decision)
    assert second.sentence == f"{action}: why (log_analyzer)"
    assert [request.partition("?")[0] for request, _ in seen] == ["POST /logs", *["GET /logs"] * 2]
    assert seen[0][1] == {
        "log_path": "/srv/logs/7.out",
        "user": "ada",
        "job_id": "7",
        "cycle_id": 2,
        "analysis_intent": "progressive",
    }
    assert seen[1][0] == "GET /logs?log_path=%2Fsrv%2Flogs%2F7.out&wait=false"


def test_nvrx_cannot_be_asked_without_a_log() -> None:
    asked = Asked(question=AttributionAsked(job=JOB, attempt=0))
    with pytest.raises(ServiceFailed, match="path of a log"):
        NvrxProtocol(Exchange("http://127.0.0.1:9")).ask(asked)
