from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec
import pytest
import urllib3

from relight.clients.backend.answers import Health, Trouble
from relight.model.instants import Instant
from relight.serve.apps import FOR_CONTROLLERS, FOR_PEOPLE, create_app
from relight.serve.ports import Daemon, Declined, Ports
from relight.serve.servers import run_server
from relight.serve.tokens import Token
from relight.store import Store, StoreBroken, StoreBusy, StoreRefused

Said = tuple[int, Any]
Ask = Callable[..., Said]
OBSERVATION = {"cluster": "main", "sequence": 1, "at": 5, "complete": True}


class Told(Daemon, Protocol):
    """The daemon of the fixture, with what it was told."""

    told: list[object]
    failure: Exception | None


def _ask(url: str, method: str, path: str, body: object = None, **headers: str) -> Said:
    sent = None if body is None else msgspec.json.encode(body)
    given = {"Content-Type": "application/json"} if body is not None else {}
    answer = urllib3.request(
        method, url + path, body=sent, headers={**given, **headers}, retries=False, timeout=10
    )
    is_json = "json" in answer.headers["content-type"]
    return answer.status, msgspec.json.decode(answer.data) if is_json else answer.data.decode()


@pytest.fixture
def embedded_url(store: Store, daemon: Told, token: str) -> Iterator[str]:
    """Give the URL of a backend whose controller is in its own process."""
    app = create_app(
        Ports(store, daemon), Token(value=token, path="/state/token"), controllers=False
    )
    with run_server(app, "127.0.0.1", 0) as server:
        yield server.url


CLOSED = [
    (method, path.replace("{key:str}", "main:123").replace("{attempt:str}", "main:124-0"))
    for route in (*FOR_PEOPLE, *FOR_CONTROLLERS)
    for path in route.paths
    for method in sorted(route.http_methods - {"OPTIONS"})
]


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_every_route_that_tells_or_changes_something_wants_the_token(
    url: str, daemon: Told, token: str, method: str, path: str
) -> None:
    body: dict[str, str] | None = {} if method in ("POST", "PUT") else None
    status, problem = _ask(url, method, path, body)
    assert (status, problem["code"]) == (401, "no-token")
    assert "/state/token" in problem["next_step"]
    assert "RELIGHT_TOKEN_FILE" in problem["next_step"]
    assert _ask(url, method, path, body, Authorization=f"Bearer {token}")[0] != 401
    assert daemon.told == []


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer another",
        "Bearer {token}x",
        "Bearer {short}",
        "Basic {token}",
        "{token}",
        "Bearer \xe9\xff",
        "Bearer " + "x" * 5_000,
    ],
)
def test_what_is_not_the_token_is_refused(url: str, token: str, header: str) -> None:
    given = header.format(token=token, short=token[:-1])
    status, problem = _ask(url, "GET", "/v1/jobs", Authorization=given)
    assert (status, problem["code"]) == (401, "wrong-token")
    assert token not in str(problem)


def test_a_refusal_names_the_scheme_as_http_wants_it(url: str) -> None:
    answer = urllib3.request("GET", f"{url}/v1/jobs", retries=False)
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/schema", "/schema/openapi.json"])
def test_what_tells_nothing_of_jobs_needs_no_token(url: str, daemon: Told, path: str) -> None:
    assert daemon.told == []
    assert _ask(url, "GET", path)[0] == 200
    assert _ask(url, "GET", path, Authorization="Bearer wrong")[0] == 200


def test_the_description_says_which_routes_want_the_token(url: str) -> None:
    _, schema = _ask(url, "GET", "/schema")
    wanting = {
        path
        for path, item in schema["paths"].items()
        for operation in item.values()
        if operation.get("security") == [{"token": []}]
    }
    assert set(schema["paths"]) - wanting == {"/healthz", "/readyz"}
    assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_beside_an_embedded_controller_nobody_can_speak_as_one(
    embedded_url: str, daemon: Told, token: str
) -> None:
    given = {"Authorization": f"Bearer {token}"}
    status = {"disposition": "converged", "reason": "desired_state_observed", "generation": 2}
    for method, path, body in (
        ("POST", "/v1/observations", OBSERVATION),
        ("POST", "/v1/outcomes", {}),
        ("PUT", "/v1/advice/main:124-0/reconciliation-status", status),
    ):
        assert _ask(embedded_url, method, path, body, **given)[0] == 404
    _, schema = _ask(embedded_url, "GET", "/schema")
    assert not [path for path in schema["paths"] if "observ" in path or "reconcil" in path]
    assert _ask(embedded_url, "GET", "/v1/jobs", **given)[0] == 200
    assert daemon.told == []


def test_readiness_tells_strangers_what_fails_and_only_the_token_what_with(
    url: str, daemon: Told, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trouble = Trouble(
        name="reading the logs of jobs", since=Instant(0), error="OSError", message="/home/ada/x"
    )
    monkeypatch.setattr(daemon, "health", lambda: Health(troubles=(trouble,)))
    status, body = _ask(url, "GET", "/readyz")
    told = "reading the logs of jobs has failed since 1970-01-01T00:00:00Z (OSError)"
    assert (status, body["reasons"]) == (503, [told])
    assert "ada" not in str(body)
    status, body = _ask(url, "GET", "/readyz", Authorization=f"Bearer {token}")
    assert (status, body["reasons"]) == (503, [f"{told}: /home/ada/x"])


JOB = {"cluster": "main", "scheduler_id": "1"}


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"jobs": [{**JOB, "scheduler_id": "9" * 5_000}]}, "cannot be a key"),
        ({"jobs": [JOB, {**JOB, "restart_count": 2**40}]}, "cannot be part of a key"),
        ({"jobs": [JOB, {**JOB, "restart_count": -1}]}, "cannot be part of a key"),
        ({"jobs": [JOB, {**JOB, "cluster": "east"}]}, "belongs to east"),
        ({"nodes": [{"cluster": "east", "name": "n"}]}, "belongs to east"),
        ({"present": ["1", "9" * 5_000]}, "cannot be a key"),
        ({"cluster": "m" * 5_000, "present": ["1"]}, "cannot be a key"),
    ],
)
def test_an_observation_with_a_name_that_cannot_be_is_refused_as_a_whole(
    url: str, daemon: Told, token: str, wrong: dict[str, object], word: str
) -> None:
    given = {"Authorization": f"Bearer {token}"}
    status, problem = _ask(url, "POST", "/v1/observations", {**OBSERVATION, **wrong}, **given)
    assert (status, problem["code"]) == (400, "bad-request")
    assert word in problem["sentence"]
    assert daemon.told == []


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        ([StoreRefused("too long")], (400, "bad-request")),
        ([StoreRefused("too long"), StoreBusy("held")], (503, "store-busy")),
        ([StoreBusy("held"), ExceptionGroup("more", [StoreBroken("full")])], (503, "store-broken")),
        ([Declined("old", "another leads")], (409, "old")),
        ([StoreBusy("held"), RuntimeError("a secret")], (500, "internal-error")),
    ],
)
def test_several_failures_of_one_report_are_told_by_the_gravest(
    url: str, daemon: Told, token: str, failures: list[Exception], expected: tuple[int, str]
) -> None:
    daemon.failure = ExceptionGroup("jobs could not be served", failures)
    given = {"Authorization": f"Bearer {token}"}
    got, problem = _ask(url, "POST", "/v1/observations", OBSERVATION, **given)
    assert (got, problem["code"]) == expected
    assert "secret" not in str(problem)
