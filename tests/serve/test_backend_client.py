from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import pytest

from relight.clients.backend import (
    BackendClient,
    BackendFailed,
    BackendRefused,
    BackendUnreachable,
    NotFound,
    TokenRefused,
)
from relight.clients.backend import backends as backend_module
from relight.clients.backend.answers import WordSaid
from relight.controller.backends import Backend
from relight.model.advice import Disposition, ReconciliationStatus, StatusReason
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.observations import Observation
from relight.model.orders import Order, OrderOutcome, Outcome, Verb
from relight.model.stimuli import Word
from relight.serve.ports import Daemon

ATTEMPT = AttemptKey.parse("main:124-0")


class Told(Daemon, Protocol):
    """The daemon of the fixture, with what it was told."""

    told: list[object]
    is_well: bool


@pytest.fixture
def client(url: str, token: str) -> Iterator[BackendClient]:
    backend = BackendClient(url, token=token)
    yield backend
    backend.close()


def test_listings_follow_their_pages_to_the_end(
    client: BackendClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_module, "_PAGE", 1)
    assert len(list(client.jobs())) == 6
    assert len(list(client.jobs({"cluster": "east"}))) == 3
    assert len(list(client.advice())) == 3
    assert len(list(client.audit())) == 7
    assert len(list(client.incidents())) == 2


def test_one_job_and_its_advice_are_shown(client: BackendClient) -> None:
    assert client.job(JobKey.parse("main:123")).case.latest is not None
    assert len(client.jobs_by_scheduler_id("124")) == 3
    assert client.advice_of(ATTEMPT).advice.generation == 2
    assert [one.generation for one in client.active_advice("main")] == [2]
    answer = client.changed_advice(wait=0)
    assert client.changed_advice(wait=1, seen=answer.tag) == answer


def test_not_being_ready_is_an_answer(client: BackendClient, daemon: Told) -> None:
    assert client.health().ready
    daemon.is_well = False
    assert client.health().reasons == ("cluster main is not seen: no answer",)


def test_a_controller_can_use_the_client_as_its_backend(
    client: BackendClient, daemon: Told
) -> None:
    backend: Backend = client
    backend.observe(Observation(cluster="main", sequence=1, at=Instant(1), complete=True))
    status = ReconciliationStatus(
        disposition=Disposition.ABANDONED, reason=StatusReason.JOB_GONE, generation=2
    )
    backend.reconciliation_status(ATTEMPT, status)
    order = Order(attempt=ATTEMPT, generation=2, verb=Verb.CANCEL)
    outcome = OrderOutcome(
        order=order,
        outcome=Outcome.DONE,
        answer="",
        ordered_at=Instant(1),
        answered_at=Instant(2),
    )
    backend.outcome(outcome)
    assert daemon.told[1:] == [("main:124-0", status), outcome]


def test_a_refusal_carries_the_sentence_and_the_next_step(client: BackendClient) -> None:
    with pytest.raises(NotFound, match="there is no job main:999: list what there is"):
        client.job(JobKey.parse("main:999"))
    said = WordSaid(word=Word.APPROVE, who="ada", generation=1)
    with pytest.raises(BackendRefused, match="generation 2 now, you read 1: read it again"):
        client.say(ATTEMPT, said)


@pytest.mark.parametrize("wrong", ["", "another"])
@pytest.mark.usefixtures("daemon")  # well, whatever the test before has made of it
def test_without_the_token_the_client_says_where_it_is(url: str, wrong: str) -> None:
    backend = BackendClient(url, token=wrong)
    with pytest.raises(TokenRefused, match="the token is in /state/token"):
        list(backend.jobs())
    assert backend.health().ready
    backend.close()


def test_a_job_whose_id_needs_quoting_is_asked_for_by_its_own_name(client: BackendClient) -> None:
    with pytest.raises(NotFound, match=r"main:8\+1 \?#%"):
        client.job(JobKey(cluster="main", scheduler_id="8+1 ?#%"))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "127.0.0.1:1", "ftp://127.0.0.1", "nonsense", "http://[", ""]
)
def test_nobody_there_says_where_it_looked_and_what_to_do(url: str) -> None:
    with pytest.raises(BackendUnreachable, match=r"relight serve|not the URL"):
        list(BackendClient(url, timeout=1).jobs())


@contextmanager
def _answering(answer: bytes) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with listening.accept()[0] as connection:
                connection.recv(65_536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


def _http(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (_http("200 OK", b"<html>a proxy's page</html>"), BackendFailed),
        (_http("200 OK", b"\xff"), BackendFailed),
        (_http("200 OK", b'{"jobs": [{}]}'), BackendFailed),
        (_http("500 Oops", b'{"code":"internal-error","sentence":"it broke"}'), BackendFailed),
        (_http("502 Bad Gateway", b"bad gateway"), BackendFailed),
        (_http("302 Found", b""), BackendFailed),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", BackendUnreachable),
        (b"SSH-2.0-OpenSSH_9.2\r\n", BackendUnreachable),
        (b"", BackendUnreachable),
    ],
)
def test_an_answer_of_something_else_is_told_as_such(answer: bytes, kind: type[Exception]) -> None:
    with _answering(answer) as url, pytest.raises(kind):
        list(BackendClient(url, timeout=2).jobs())


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_module, "LARGEST_ANSWER", 1_000)
    with _answering(_http("200 OK", b" " * 5_000)) as url, pytest.raises(BackendFailed):
        list(BackendClient(url, timeout=2).jobs())


def test_fields_of_a_newer_backend_are_ignored() -> None:
    body = b'{"jobs":[{"key":"a:1","cluster":"a","scheduler_id":"1","mood":"good"}],"new":1}'
    with _answering(_http("200 OK", body)) as url:
        (line,) = BackendClient(url, timeout=2).jobs()
    assert line.key == "a:1"
