"""The backend as its clients see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec
import urllib3
from urllib3.exceptions import HTTPError, LocationParseError

from relight.clients.backend.answers import (
    Accepted,
    AdviceAnswer,
    AdviceHistory,
    AuditAnswer,
    IncidentLine,
    IncidentsAnswer,
    JobAnswer,
    JobLine,
    JobsAnswer,
    Problem,
    Readiness,
    WordSaid,
)
from relight.clients.backend.errors import (
    BackendError,
    BackendFailed,
    BackendRefused,
    BackendUnreachable,
    NotFound,
    TokenRefused,
)
from relight.model.advice import Advice, ReconciliationStatus
from relight.model.audit import AuditEntry
from relight.model.jobs import AttemptKey, JobKey
from relight.model.observations import Observation
from relight.model.orders import OrderOutcome

LARGEST_ANSWER = 256 * 1024 * 1024
"""An answer of more bytes is not read: a page of 250 cases is far below."""

_PAGE = 250
_NAMELESS = 401
_MISSING = 404
_FIRST_REFUSAL = 400
_FIRST_FAILURE = 500
_NOT_READY = 503
_STEP = 1024 * 1024

Answer = TypeVar("Answer")
Filters = Mapping[str, str]


class BackendClient:
    """Asks one backend over HTTP. Listings follow their pages by themselves.

    ``token`` is what the backend keeps in the file ``token`` of its state folder; only
    ``health`` can do without. Every method raises BackendUnreachable (start it, or name the
    right one), TokenRefused (give the right token), NotFound, BackendRefused (correct the
    request) or BackendFailed (look at the backend's log).
    """

    def __init__(self, url: str, *, token: str = "", timeout: float = 10.0) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._pool = urllib3.PoolManager(retries=False)

    def close(self) -> None:
        """Close every connection."""
        self._pool.clear()

    def jobs(self, filters: Filters | None = None) -> Iterator[JobLine]:
        """Yield the jobs that match, open ones first, then newest first.

        Filters: cluster, user, state, partition, name, open.
        """
        token = ""
        while True:
            page = self._get("/v1/jobs", JobsAnswer, _paged(filters, token))
            yield from page.jobs
            if not (token := page.next_page_token):
                return

    def job(self, key: JobKey) -> JobAnswer:
        """Return one job with its attempts, incidents and advice."""
        return self._get(f"/v1/jobs/{_part(key)}", JobAnswer)

    def jobs_by_scheduler_id(self, scheduler_id: str) -> tuple[JobLine, ...]:
        """Return the jobs of every cluster that bear or bore this id, newest first."""
        return self._get(f"/v1/jobs/by-scheduler-id/{_part(scheduler_id)}", JobsAnswer).jobs

    def incidents(self, filters: Filters | None = None) -> Iterator[IncidentLine]:
        """Yield the incidents, those of open jobs first. Filters: cluster, open."""
        token = ""
        while True:
            page = self._get("/v1/incidents", IncidentsAnswer, _paged(filters, token))
            yield from page.incidents
            if not (token := page.next_page_token):
                return

    def active_advice(self, cluster: str = "") -> tuple[Advice, ...]:
        """Return the advice that the world has not followed yet, of all clusters without a name."""
        return self.changed_advice(cluster, wait=0).advice

    def changed_advice(self, cluster: str = "", *, wait: int, seen: str = "") -> AdviceAnswer:
        """Return the active advice as soon as it differs from the answer of tag ``seen``.

        Waits at most ``wait`` seconds (0 to 60) for that; without a tag, for any advice at all.
        """
        query = {"active": "true", "cluster": cluster, "wait": str(wait or ""), "seen": seen}
        return self._get("/v1/advice", AdviceAnswer, query, patience=wait)

    def advice(self, cluster: str = "") -> Iterator[Advice]:
        """Yield every generation of every advice, newest first."""
        token = ""
        while True:
            query = _paged({"cluster": cluster}, token)
            page = self._get("/v1/advice", AdviceAnswer, query)
            yield from page.advice
            if not (token := page.next_page_token):
                return

    def advice_of(self, attempt: AttemptKey) -> AdviceHistory:
        """Return the advice on one attempt and its generations."""
        return self._get(f"/v1/advice/{_part(attempt)}", AdviceHistory)

    def audit(self, filters: Filters | None = None) -> Iterator[AuditEntry]:
        """Yield the audit. Filters: job, attempt, topic, cluster, since, until, order."""
        token = ""
        while True:
            page = self._get("/v1/audit/events", AuditAnswer, _paged(filters, token))
            yield from page.events
            if not (token := page.next_page_token):
                return

    def health(self) -> Readiness:
        """Return whether the backend sees all that it should; not being ready is an answer."""
        return self._get("/readyz", Readiness, accepted=_NOT_READY)

    def say(self, attempt: AttemptKey, said: WordSaid) -> Accepted:
        """Say yes or no to an advice that waits for a person."""
        return self._send("POST", f"/v1/advice/{_part(attempt)}/word", said)

    def observe(self, observation: Observation) -> None:
        """Hand over what a controller has seen; it may be sent again."""
        self._send("POST", "/v1/observations", observation)

    def reconciliation_status(self, attempt: AttemptKey, status: ReconciliationStatus) -> None:
        """Tell how far the world has followed an advice."""
        self._send("PUT", f"/v1/advice/{_part(attempt)}/reconciliation-status", status)

    def outcome(self, outcome: OrderOutcome) -> None:
        """Tell what became of an order; it may be sent again."""
        self._send("POST", "/v1/outcomes", outcome)

    def _get(
        self,
        path: str,
        kind: type[Answer],
        query: Filters | None = None,
        *,
        patience: int = 0,
        accepted: int = 200,
    ) -> Answer:
        given = {name: value for name, value in (query or {}).items() if value}
        whole = path + (f"?{urlencode(given)}" if given else "")
        status, body = self._exchange("GET", whole, None, patience)
        if status >= _FIRST_REFUSAL and status != accepted:
            raise self._problem(status, body)
        return self._decoded(body, kind)

    def _send(self, method: str, path: str, record: msgspec.Struct) -> Accepted:
        status, body = self._exchange(method, path, msgspec.json.encode(record), 0)
        if status >= _FIRST_REFUSAL:
            raise self._problem(status, body)
        return self._decoded(body, Accepted)

    def _exchange(
        self, method: str, path: str, body: bytes | None, patience: int
    ) -> tuple[int, bytes]:
        if not self.url.startswith(("http://", "https://")):
            raise self._not_a_url()
        typed = {"Content-Type": "application/json"} if body is not None else {}
        timeout = urllib3.Timeout(connect=min(self._timeout, 5.0), read=self._timeout + patience)
        try:
            answer = self._pool.request(
                method,
                self.url + path,
                body=body,
                headers={**self._headers, **typed},
                preload_content=False,
                redirect=False,
                decode_content=False,
                timeout=timeout,
            )
            try:
                return answer.status, self._read(answer)
            finally:
                answer.release_conn()
        except (LocationParseError, ValueError) as error:
            raise self._not_a_url() from error
        except HTTPError as error:
            raise BackendUnreachable(
                f"no backend answers at {self.url} ({_cause(error)}): start it with relight serve, "
                "or name another one with --url or RELIGHT_URL"
            ) from error

    def _not_a_url(self) -> BackendUnreachable:
        return BackendUnreachable(
            f'"{self.url}" is not the URL of a backend: write http://127.0.0.1:8474'
        )

    def _read(self, answer: urllib3.BaseHTTPResponse) -> bytes:
        parts: list[bytes] = []
        size = 0
        for part in answer.stream(_STEP, decode_content=False):
            parts.append(part)
            size += len(part)
            if size > LARGEST_ANSWER:
                answer.close()
                raise BackendFailed(f"{self.url} answered with more than {LARGEST_ANSWER} bytes")
        return b"".join(parts)

    def _decoded(self, body: bytes, kind: type[Answer]) -> Answer:
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise BackendFailed(
                f"{self.url} answered with something else than a backend of relight ({error}): "
                "check the URL and that both have the same version"
            ) from error

    def _problem(self, status: int, body: bytes) -> BackendError:
        problem = self._decoded(body, Problem)
        message = problem.sentence + (f": {problem.next_step}" if problem.next_step else "")
        if status == _NAMELESS:
            return TokenRefused(message)
        if status == _MISSING:
            return NotFound(message)
        return (BackendFailed if status >= _FIRST_FAILURE else BackendRefused)(message)


def _paged(filters: Filters | None, token: str) -> dict[str, str]:
    return {**(filters or {}), "limit": str(_PAGE), "pageToken": token}


def _part(value: object) -> str:
    return quote(str(value), safe="")


def _cause(error: HTTPError) -> str:
    inner = error.__cause__
    return str(inner) if isinstance(inner, OSError) else type(error).__name__
