"""Servers that are down, slow, or answer with something else: each is told, none is waited for."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relight.clients.prometheus import (
    AccessRefused,
    Answer,
    MetricsError,
    MetricsServer,
    QueryRefused,
    ServerFailed,
    ServerUnreachable,
)
from relight.model.instants import from_unix

AT = from_unix(1_700_000_000)
EMPTY = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
Reply = Callable[[socket.socket, bytes], None]


@contextlib.contextmanager
def serving(reply: Reply) -> Iterator[str]:
    """Answer each connection on the loopback as ``reply`` does, given what was asked."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def answer(taken: socket.socket) -> None:
        with taken, contextlib.suppress(OSError):
            taken.settimeout(10)
            reply(taken, _request(taken))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                taken, _ = listener.accept()
                threads.append(threading.Thread(target=answer, args=(taken,)))
                threads[-1].start()

    threads.append(threading.Thread(target=accept))
    threads[0].start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in threads:
            thread.join(15)


def _request(taken: socket.socket) -> bytes:
    asked = b""
    while b"\r\n\r\n" not in asked:
        asked += taken.recv(65_536)
    head, _, body = asked.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
    while len(body) < length:
        body += taken.recv(65_536)
    return head + b"\r\n\r\n" + body


def http(status: int, body: bytes, kind: str = "application/json") -> Reply:
    def reply(taken: socket.socket, _: bytes) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        taken.sendall(head.encode() + body)

    return reply


def ask(url: str, timeout: float = 5.0) -> Answer:
    return MetricsServer(url, timeout=timeout).instant("up", AT)


def test_a_server_that_is_down_is_named_with_what_to_do() -> None:
    with pytest.raises(ServerUnreachable, match=r"no server answers at http://127\.0\.0\.1:1/"):
        ask("http://127.0.0.1:1")


@pytest.mark.parametrize(
    "url", ["", "metrics:9090", "ftp://metrics", "http://", "http://[::1", "x"]
)
def test_what_is_no_url_is_named(url: str) -> None:
    with pytest.raises(ServerUnreachable, match=r"not the URL|no server answers"):
        ask(url)


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (400, b'{"status":"error","errorType":"bad_data","error":"parse"}', QueryRefused, "parse"),
        (422, b'{"status":"error","errorType":"422","error":"timed out"}', QueryRefused, "timed"),
        (401, b"no", AccessRefused, "token_file"),
        (403, b"no org id", AccessRefused, "tenant"),
        (404, b"404 page not found", ServerFailed, "without /api/v1"),
        (302, b"", ServerFailed, "without /api/v1"),
        (500, b"", ServerFailed, "own log"),
        (503, b"<html>overload</html>", ServerFailed, "<html>overload"),
        (200, b"<html>Welcome</html>", ServerFailed, "something else than metrics"),
        (200, EMPTY[:-9], ServerFailed, "something else than metrics"),
    ],
)
def test_each_kind_of_refusal_is_told_apart(
    status: int, body: bytes, kind: type[MetricsError], words: str
) -> None:
    with serving(http(status, body)) as url, pytest.raises(kind) as caught:
        ask(url)
    assert words in str(caught.value)


def silent(taken: socket.socket, _: bytes) -> None:
    taken.recv(1)


def _drip(taken: socket.socket, text: bytes) -> None:
    for byte in text:
        taken.sendall(bytes([byte]))
        time.sleep(0.05)


def dripping_head(taken: socket.socket, _: bytes) -> None:
    _drip(taken, b"HTTP/1.1 200 OK\r\n" + b"X-Filler: 1\r\n" * 100)


def dripping_body(taken: socket.socket, _: bytes) -> None:
    taken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    _drip(taken, b" " * 1000)


def dripping_to_the_end(taken: socket.socket, _: bytes) -> None:
    taken.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + EMPTY)
    _drip(taken, b" " * 1000)


def dripping_chunks(taken: socket.socket, _: bytes) -> None:
    taken.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _number in range(200):
        taken.sendall(b"1\r\n \r\n")
        time.sleep(0.05)


@pytest.mark.parametrize(
    "reply", [silent, dripping_head, dripping_body, dripping_to_the_end, dripping_chunks]
)
def test_a_server_that_is_slow_is_given_up_at_the_deadline(reply: Reply) -> None:
    with serving(reply) as url:
        started = time.monotonic()
        with pytest.raises(ServerUnreachable, match=r"did not answer fully within 0\.4 s"):
            ask(url, timeout=0.4)
        assert 0.3 < time.monotonic() - started < 2.0


def test_the_patience_of_one_question_can_be_shorter() -> None:
    with serving(silent) as url:
        started = time.monotonic()
        with pytest.raises(ServerUnreachable):
            MetricsServer(url, timeout=60).instant("up", AT, patience=0.2)
        assert time.monotonic() - started < 2.0


def endless(taken: socket.socket, _: bytes) -> None:
    taken.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"status":"success","data":{"resultType":"vector",')
    taken.sendall(b'"result":[')
    piece = b'{"metric":{"__name__":"up","instance":"x:1"},"value":[1,"1"]},' * 2_000
    while True:
        taken.sendall(piece)


PROBE = """
import resource, sys
from relight.clients.prometheus import MetricsError, MetricsServer
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    MetricsServer(sys.argv[1], timeout=60).instant("up", 1_700_000_000_000_000)
except MetricsError as error:
    print(type(error).__name__, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def _measured(url: str) -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, url], capture_output=True, text=True, check=True, timeout=90
    )
    kind, grown = done.stdout.split()
    return kind, int(grown)


def test_an_endless_answer_is_cut_off_and_costs_little_memory() -> None:
    with serving(endless) as url:
        kind, grown = _measured(url)
    assert kind == "AnswerTooLarge"
    assert grown < 150 * 1024, "KiB beside the 64 MiB that are read at most"


def test_a_million_series_are_refused_and_cost_little_memory() -> None:
    rows = b'{"metric":{},"value":[1,"1"]},' * 1_000_000
    body = EMPTY.replace(b"[]", b"[" + rows[:-1] + b"]")
    with serving(http(200, body)) as url:
        kind, grown = _measured(url)
    assert kind == "AnswerTooLarge"
    assert grown < 250 * 1024, "KiB"


def test_token_and_tenant_are_sent_and_the_token_is_read_anew(tmp_path: Path) -> None:
    asked: list[bytes] = []

    def reply(taken: socket.socket, request: bytes) -> None:
        asked.append(request)
        http(200, EMPTY)(taken, request)

    file = tmp_path / "token"
    with serving(reply) as url:
        server = MetricsServer(f"{url}/prometheus/", token_file=str(file), tenant="team-a")
        for token in ("first", "second"):
            file.write_text(f"{token}\n")
            assert server.instant('up{a="b c"}', AT).rows == ()
    for sent, request in zip((b"first", b"second"), asked, strict=True):
        assert request.startswith(b"POST /prometheus/api/v1/query HTTP/1.1\r\n")
        assert b"Authorization: Bearer " + sent + b"\r\n" in request
        assert b"X-Scope-OrgID: team-a\r\n" in request
        assert b"query=up%7Ba%3D%22b+c%22%7D" in request


def test_a_proxy_that_allows_only_get_is_asked_that_way() -> None:
    def reply(taken: socket.socket, request: bytes) -> None:
        is_get = request.startswith(b"GET /api/v1/query?query=up&")
        http(200 if is_get else 405, EMPTY if is_get else b"no")(taken, request)

    with serving(reply) as url:
        assert ask(url).rows == ()


@pytest.mark.parametrize("content", [None, b"", b"a\nb", b"\xff", b"a\r\nX-Evil: 1"])
def test_a_token_that_cannot_be_used_is_named_and_nothing_is_asked(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    server = MetricsServer("http://127.0.0.1:1", token_file=str(file))
    with pytest.raises(AccessRefused, match="token"):
        server.instant("up", AT)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1",
            "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1",
            "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "certificate")]  # fmt: skip
    subprocess.run(made, capture_output=True, check=True, timeout=30)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        taken, _ = listener.accept()
        with taken, contextlib.suppress(OSError), context.wrap_socket(taken, server_side=True):
            pass

    thread = threading.Thread(target=serve)
    thread.start()
    with pytest.raises(ServerUnreachable, match="certificate"):
        ask(f"https://127.0.0.1:{listener.getsockname()[1]}")
    thread.join(10)
    listener.close()
