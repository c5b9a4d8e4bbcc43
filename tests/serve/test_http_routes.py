from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
import pytest
import urllib3

from relight.clients.backend.answers import Health
from relight.model.advice import Decision
from relight.serve.apps import FOR_CONTROLLERS, FOR_PEOPLE, OPEN, create_app
from relight.serve.ports import Daemon, Declined, Ports
from relight.serve.servers import CannotListen, run_server
from relight.serve.tokens import Token
from relight.store import Change, Store, StoreBroken, StoreBusy

TOKEN = Token(value="the-token-of-the-tests", path="/state/token")
Ask = Callable[..., tuple[int, Any]]


class Told(Daemon, Protocol):
    """The daemon of the fixture, with what it was told."""

    told: list[object]
    is_well: bool
    failure: Exception | None


@pytest.fixture
def ask(url: str) -> Ask:
    return asking(url)


def asking(url: str) -> Ask:
    pool = urllib3.PoolManager(retries=False, timeout=10)

    def exchange(method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        sent = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        given = {"Content-Type": "application/json"} if body is not None else {}
        given |= {"Authorization": f"Bearer {TOKEN.value}"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        answer = pool.request(method, url + path, body=sent, headers=given)
        is_json = "json" in answer.headers["content-type"]
        return answer.status, msgspec.json.decode(answer.data) if is_json else answer.data.decode()

    return exchange


def test_jobs_are_listed_open_ones_first_with_what_relight_says(ask: Ask) -> None:
    status, body = ask("GET", "/v1/jobs")
    assert status == 200
    keys = [line["key"] for line in body["jobs"]]
    assert keys == ["main:8_1", "main:124", "main:123", "east:77", "east:124~1", "east:124"]
    (line,) = (line for line in body["jobs"] if line["key"] == "main:123")
    assert line["attempt"] == 1
    assert line["step"] == 40
    assert line["says"] == "Recovered: step 21 was completed 55 s after the failure."


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("cluster=east", ["east:77", "east:124~1", "east:124"]),
        ("user=bob", ["main:124"]),
        ("state=running", ["main:123"]),
        ("name=llama&partition=train", ["main:123"]),
        ("open=true", ["main:8_1", "main:124", "main:123"]),
        ("open=false&limit=1", ["east:77"]),
        ("user=nobody", []),
    ],
)
def test_jobs_are_narrowed(ask: Ask, query: str, expected: list[str]) -> None:
    status, body = ask("GET", f"/v1/jobs?{query}")
    assert status == 200
    assert [line["key"] for line in body.get("jobs", [])] == expected


def test_pages_follow_each_other_by_their_token(ask: Ask) -> None:
    found, token = [], ""
    while True:
        _, body = ask("GET", f"/v1/jobs?limit=4&pageToken={token}")
        found += [line["key"] for line in body["jobs"]]
        token = body.get("nextPageToken", "")
        if not token:
            break
    assert len(found) == len(set(found)) == 6


def test_a_job_is_shown_with_attempts_incidents_and_advice(ask: Ask) -> None:
    status, body = ask("GET", "/v1/jobs/main:123")
    assert status == 200
    first = body["case"]["attempts"][0]
    assert first["incident"]["verdict"]["cause"] == "gpu-ecc-uncorrectable"
    assert first["advice"]["exclusions"] == ["node-03"]
    assert ask("GET", "/v1/jobs/main:8_1")[0] == 200
    assert ask("GET", "/v1/jobs/east:124~1")[1]["job"]["reuse"] == 1


def test_a_scheduler_id_finds_every_bearer_the_newest_first(ask: Ask) -> None:
    _, body = ask("GET", "/v1/jobs/by-scheduler-id/124?cluster=east")
    assert [line["key"] for line in body["jobs"]] == ["east:124~1", "east:124"]
    assert len(ask("GET", "/v1/jobs/by-scheduler-id/124")[1]["jobs"]) == 3


def test_incidents_are_listed_with_verdict_and_outcome(ask: Ask) -> None:
    _, body = ask("GET", "/v1/incidents")
    lines = {line["job"]: line for line in body["incidents"]}
    assert set(lines) == {"main:123", "main:124"}
    assert lines["main:123"]["suspects"] == ["node-03"]
    assert lines["main:123"]["closed"].startswith("Recovered")
    assert lines["main:124"]["phase"] == "advised"


def test_advice_is_listed_whole_or_only_what_is_active(ask: Ask) -> None:
    _, every = ask("GET", "/v1/advice")
    assert len(every["advice"]) == 3
    _, active = ask("GET", "/v1/advice?active=true")
    assert [one["generation"] for one in active["advice"]] == [2]
    _, history = ask("GET", "/v1/advice/main:124-0")
    assert history["advice"]["decision"] == "stop"
    assert [one["generation"] for one in history["generations"]] == [1, 2]


def test_waiting_for_advice_ends_when_it_changes(own_url: str, own_store: Store) -> None:
    ask = asking(own_url)
    _, before = ask("GET", "/v1/advice?active=true&wait=5")
    started = time.monotonic()
    _, same = ask("GET", f"/v1/advice?active=true&wait=1&seen={before['tag']}")
    assert time.monotonic() - started >= 1
    assert same == before
    case = own_store.newest_case("main", "124")
    assert case is not None
    assert case.attempts[0].advice is not None
    later = msgspec.structs.replace(
        case.attempts[0].advice, generation=3, decision=Decision.RESTART
    )
    timer = threading.Timer(0.3, own_store.commit, (Change(advice=(later,)),))
    timer.start()
    started = time.monotonic()
    _, after = ask("GET", f"/v1/advice?active=true&wait=30&seen={before['tag']}")
    timer.join()
    assert time.monotonic() - started < 5
    assert [one["generation"] for one in after["advice"]] == [3]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 7),
        ("job=main:123", 5),
        ("job=main:123&topic=order", 1),
        ("job=main:123&attempt=1", 0),
        ("since=2026-03-01T10:01:11Z&until=2026-03-01T10:01:35Z", 2),
        ("cluster=east", 0),
    ],
)
def test_the_audit_is_narrowed(ask: Ask, query: str, count: int) -> None:
    status, body = ask("GET", f"/v1/audit/events?{query}")
    assert status == 200
    assert len(body.get("events", [])) == count


def test_the_audit_can_be_read_backwards(ask: Ask) -> None:
    _, forwards = ask("GET", "/v1/audit/events")
    _, backwards = ask("GET", "/v1/audit/events?order=newest")
    assert forwards["events"] == backwards["events"][::-1]


def test_a_persons_word_reaches_the_daemon_once_it_is_about_the_newest_generation(
    ask: Ask, daemon: Told
) -> None:
    said = {"word": "approve", "who": " ada ", "why": "seen it", "generation": 2}
    status, body = ask("POST", "/v1/advice/main:124-0/word", said)
    assert (status, body) == (
        200,
        {"sentence": "the advice on main:124-0 is approved by ada (claimed)"},
    )
    assert daemon.told == [("main:124-0", 2, "approve", "ada (claimed)", "seen it")]


@pytest.mark.parametrize(
    ("path", "said", "expected"),
    [
        ("main:124-0", {"generation": 1}, (409, "stale-generation")),
        ("main:124-0", {"who": " "}, (400, "bad-request")),
        ("main:124-0", {"why": "x" * 3_000}, (400, "bad-request")),
        ("main:124-0", {"word": "maybe"}, (400, "bad-request")),
        ("main:123-0", {"generation": 1}, (409, "not-waiting")),
        ("main:999-0", {}, (404, "not-found")),
        ("main:124", {}, (400, "bad-request")),
    ],
)
def test_a_word_that_cannot_count_is_refused_and_goes_nowhere(
    ask: Ask, daemon: Told, path: str, said: dict[str, object], expected: tuple[int, str]
) -> None:
    whole = {"word": "reject", "who": "ada", "generation": 2, **said}
    got, body = ask("POST", f"/v1/advice/{path}/word", whole)
    assert (got, body["code"]) == expected
    assert body["sentence"]
    assert body["next_step"]
    assert daemon.told == []


def test_what_a_controller_reports_reaches_the_daemon(ask: Ask, daemon: Told) -> None:
    observation = {
        "cluster": "main",
        "sequence": 1,
        "at": 5,
        "complete": True,
        "jobs": [{"cluster": "main", "scheduler_id": "1", "state": "running"}],
        "a field of a newer controller": [1],
    }
    assert ask("POST", "/v1/observations", observation)[0] == 200
    attempt = {"job": {"cluster": "main", "scheduler_id": "124"}, "attempt": 0}
    outcome = {
        "order": {"attempt": attempt, "generation": 2, "verb": "cancel"},
        "outcome": "done",
        "answer": "",
        "ordered_at": 1,
        "answered_at": 2,
    }
    assert ask("POST", "/v1/outcomes", outcome)[0] == 200
    status = {"disposition": "converged", "reason": "desired_state_observed", "generation": 2}
    assert ask("PUT", "/v1/advice/main:124-0/reconciliation-status", status)[0] == 200
    assert len(daemon.told) == 3
    wrong = {**status, "generation": 9}
    got, body = ask("PUT", "/v1/advice/main:124-0/reconciliation-status", wrong)
    assert (got, body["code"]) == (409, "unknown-generation")


def test_what_the_daemon_declines_is_told_with_its_reason(ask: Ask, daemon: Told) -> None:
    daemon.failure = Declined("old-fencing", "another controller leads main", "stop this one")
    observation = {"cluster": "main", "sequence": 1, "at": 5, "complete": True}
    assert ask("POST", "/v1/observations", observation) == (
        409,
        {
            "code": "old-fencing",
            "sentence": "another controller leads main",
            "next_step": "stop this one",
        },
    )


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (StoreBusy("held"), 503, "store-busy"),
        (StoreBroken("disk full"), 503, "store-broken"),
        (RuntimeError("a secret"), 500, "internal-error"),
    ],
)
def test_a_failure_inside_is_told_without_its_inner_parts(
    ask: Ask, daemon: Told, failure: Exception, status: int, code: str
) -> None:
    daemon.failure = failure
    observation = {"cluster": "main", "sequence": 1, "at": 5, "complete": True}
    got, body = ask("POST", "/v1/observations", observation)
    assert (got, body["code"]) == (status, code)
    assert "secret" not in str(body)


@pytest.mark.parametrize(
    ("path", "status", "word"),
    [
        ("/v1/jobs/main:999", 404, "main:999"),
        ("/v1/jobs/123", 400, "does not name a job"),
        ("/v1/jobs/main:1~99999999999999999999999", 400, "cannot be part of a key"),
        ("/v1/jobs/main:" + "9" * 100, 400, "cannot be a key"),
        ("/v1/jobs/main:1~" + "9" * 4_500, 400, "160"),
        ("/v1/jobs/%00:%ff", 404, "no job"),
        ("/v1/jobs/main%3A1%2F..%2F", 404, "Not Found"),
        ("/v1/jobs/by-scheduler-id/999", 404, "no watched job bears"),
        ("/v1/advice/main:999-0", 404, "no advice"),
        ("/v1/advice/x", 400, "does not name an attempt"),
        ("/v1/advice/main:1-99999999999999999999", 400, "cannot be part of a key"),
        ("/v1/advice?wait=3", 400, "active=true"),
        ("/v1/advice?active=true&wait=61", 400, "wait"),
        ("/v1/jobs?limit=251", 400, "limit"),
        ("/v1/jobs?limit=0", 400, "limit"),
        ("/v1/jobs?limit=x", 400, "limit"),
        ("/v1/jobs?state=flying", 400, "state"),
        ("/v1/jobs?pageToken=nonsense", 400, "page token"),
        ("/v1/jobs?colour=red", 400, '"colour" is not a parameter'),
        ("/v1/jobs/main:123?x=1", 400, '"x" is not a parameter'),
        ("/healthz?x=1", 400, '"x" is not a parameter'),
        ("/v1/audit/events?attempt=99999999999999999999", 400, "attempt"),
        ("/v1/audit/events?since=yesterday", 400, "ISO 8601"),
        ("/v1/audit/events?job=123", 400, "does not name a job"),
        ("/nowhere", 404, "Not Found"),
    ],
)
def test_a_wrong_question_is_answered_in_three_words_and_never_fails(
    ask: Ask, path: str, status: int, word: str
) -> None:
    got, body = ask("GET", path)
    assert got == status
    assert word in body["sentence"]
    assert body["code"]
    assert body["next_step"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"cluster": 1}',
        b"[" * 100_000,
        b'{"cluster":"main","sequence":1,"at":1e400,"complete":true}',
        b'{"cluster":"main","sequence":1,"at":1,"complete":true,"jobs":[{}]}',
    ],
)
def test_a_body_that_cannot_be_read_is_refused(ask: Ask, daemon: Told, body: bytes) -> None:
    for method, path in (
        ("POST", "/v1/observations"),
        ("POST", "/v1/outcomes"),
        ("POST", "/v1/advice/main:124-0/word"),
        ("PUT", "/v1/advice/main:124-0/reconciliation-status"),
    ):
        status, problem = ask(method, path, body)
        if (method, body) == ("PUT", b""):
            continue
        assert status in (400, 409, 413), (path, problem)
        assert problem["code"]
    assert daemon.told == []


def test_a_body_that_is_too_large_is_refused(ask: Ask) -> None:
    status, problem = ask("POST", "/v1/advice/main:124-0/word", b" " * 100_000)
    assert (status, problem["code"]) == (413, "body-too-large")


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Host": "evil.example"}, 403, "foreign-host"),
        ({"Host": "127.0.0.1.evil.example:80"}, 403, "foreign-host"),
        ({"Origin": "http://evil.example"}, 403, "foreign-origin"),
        ({"Origin": "null"}, 403, "foreign-origin"),
        ({"Content_Type": "text/plain"}, 415, "not-json"),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415, "not-json"),
    ],
)
def test_a_page_in_a_browser_cannot_speak_for_a_person(
    ask: Ask, daemon: Told, headers: dict[str, str], status: int, code: str
) -> None:
    said = {"word": "approve", "who": "ada", "why": "", "generation": 2}
    got, body = ask("POST", "/v1/advice/main:124-0/word", said, **headers)
    assert (got, body["code"]) == (status, code)
    assert daemon.told == []


def test_health_is_always_well_and_readiness_says_what_is_not_seen(ask: Ask, daemon: Told) -> None:
    assert ask("GET", "/readyz")[0] == 200
    daemon.is_well = False
    assert ask("GET", "/healthz")[0] == 200
    status, body = ask("GET", "/readyz")
    assert status == 503
    assert body["reasons"] == ["cluster main is not seen: no answer"]
    assert (body["code"], body["sentence"]) == ("not-ready", body["reasons"][0])


def test_the_root_page_says_the_mode_and_links_to_the_schema(ask: Ask) -> None:
    status, page = ask("GET", "/")
    assert status == 200
    assert "<strong>approve</strong>" in page
    assert 'href="/schema"' in page


def test_nothing_configured_is_monitor_mode_and_ready() -> None:
    assert Health().mode == "monitor"
    assert Health().reasons == ()


def test_every_route_parameter_and_answer_is_documented(ask: Ask) -> None:
    _, schema = ask("GET", "/schema")
    assert schema["info"]["title"] == "relight"
    assert ask("GET", "/schema/openapi.json")[1] == schema
    described = {
        (method.upper(), path) for path, item in schema["paths"].items() for method in item
    }
    for route in (*OPEN, *FOR_PEOPLE, *FOR_CONTROLLERS):
        (path,) = route.paths
        if path == "/":
            continue
        shown = path.replace(":str}", "}")
        for method in route.http_methods - {"OPTIONS"}:
            assert (method, shown) in described
            operation = schema["paths"][shown][method.lower()]
            assert len(operation["description"]) > 20
            assert operation["summary"]
            asked = [one for one in operation.get("parameters", []) if one["in"] == "query"]
            assert all(one["description"] for one in operation.get("parameters", []))
            assert {one["name"] for one in asked} == set(route.opt.get("query", ()))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])  # noqa: S104 - refused is what is tested
def test_a_host_that_others_can_reach_is_refused(store: Store, daemon: Told, host: str) -> None:
    with pytest.raises(CannotListen, match="nothing is encrypted"):
        run_server(create_app(Ports(store, daemon), TOKEN, controllers=True), host, 0)


def test_an_address_that_is_taken_is_refused(store: Store, daemon: Told, url: str) -> None:
    port = urlsplit(url).port or 0
    with pytest.raises(CannotListen, match=str(port)):
        run_server(create_app(Ports(store, daemon), TOKEN, controllers=True), "127.0.0.1", port)


def test_a_stopped_server_answers_who_waits_and_leaves_no_thread_and_no_port(
    store: Store, daemon: Told
) -> None:
    before = set(threading.enumerate())
    server = run_server(create_app(Ports(store, daemon), TOKEN, controllers=True), "127.0.0.1", 0)
    port = urlsplit(server.url).port or 0
    with socket.create_connection(("127.0.0.1", port)) as waiting:
        waiting.sendall(
            b"GET /v1/advice?active=true&wait=60&cluster=x HTTP/1.1\r\nHost: localhost\r\n"
            b"Authorization: Bearer " + TOKEN.value.encode() + b"\r\n\r\n"
        )
        time.sleep(0.2)
        started = time.monotonic()
        server.stop()
        server.stop()
        assert time.monotonic() - started < 5
        assert waiting.recv(100).startswith(b"HTTP/1.1 200")
    started_here = set(threading.enumerate()) - before
    assert not [thread for thread in started_here if thread.name == "relight-http"]
    with socket.create_server(("127.0.0.1", port)):
        pass
