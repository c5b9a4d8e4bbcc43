"""A metrics server as its clients see it: queries in PromQL, series back."""

from __future__ import annotations

from urllib.parse import urlencode

from relight.clients.exchanges import (
    Limits,
    NoAnswer,
    Response,
    TokenUnread,
    TooLarge,
    exchange,
    read_token,
)
from relight.clients.prometheus.answers import Answer, Bounds, read_answer, refusal
from relight.clients.prometheus.errors import (
    AccessRefused,
    AnswerTooLarge,
    MetricsError,
    QueryRefused,
    ServerFailed,
    ServerUnreachable,
)
from relight.model.instants import Instant, in_seconds

MOST_POINTS = 11_000
"""Points of one series in one answer: Prometheus itself refuses more (web/api/v1/api.go)."""
LARGEST_ANSWER = 64 * 1024 * 1024
"""Bytes; the series of 100 nodes in 15 minutes have a tenth of it."""
_LONGEST_TOKEN = 16_384
_OK = 200
_REDIRECTS = range(300, 400)
_QUERY_ERRORS = (400, 422)
_ACCESS_ERRORS = (401, 403, 407)
_MISSING = 404
_ONLY_GET = 405


class MetricsServer:
    """Asks one server. Any thread may use it; nothing is kept between two queries.

    ``token_file`` is read anew each time, since tokens are renewed, and its content sent as a
    bearer token. ``tenant`` is sent as X-Scope-OrgID. ``timeout`` bounds one query, in seconds,
    ``bounds`` what is taken of one answer.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 5.0,
        token_file: str = "",
        tenant: str = "",
        bounds: Bounds | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._timeout = timeout
        self._token_file = token_file
        self._tenant = tenant
        self._bounds = bounds or Bounds()

    def instant(self, query: str, at: Instant, *, patience: float | None = None) -> Answer:
        """Return what a query says at one instant: a vector, or a matrix for a range in brackets.

        ``patience``, in seconds, takes the place of a longer timeout.

        Raises:
            MetricsError: there was no usable answer; the class says why.

        """
        fields = {"query": query, "time": _unix(at)}
        return self._asked("/api/v1/query", fields, patience)

    def range(
        self,
        query: str,
        since: Instant,
        until: Instant,
        *,
        step: float,
        patience: float | None = None,
    ) -> Answer:
        """Return what a query says from ``since`` to ``until``, every ``step`` seconds.

        A step that would lead to more than ``MOST_POINTS`` points a series is made longer.

        Raises:
            MetricsError: there was no usable answer; the class says why.

        """
        step = max(step, in_seconds(until - since) / (MOST_POINTS - 1), 0.001)
        fields = {
            "query": query,
            "start": _unix(since),
            "end": _unix(until),
            "step": f"{step:.3f}",
        }
        return self._asked("/api/v1/query_range", fields, patience)

    def _asked(self, path: str, fields: dict[str, str], patience: float | None) -> Answer:
        """Ask by POST, as a form: the names of a hundred nodes are too long for a URL.

        Where a proxy allows only GET, and says so, that is used.
        """
        seconds = self._timeout if patience is None else min(patience, self._timeout)
        if seconds <= 0:
            raise ServerUnreachable(f"there was no time left to ask {self.url}")
        form = urlencode({**fields, "timeout": f"{max(1, round(seconds * 1000))}ms"})
        limits = Limits(seconds=seconds, most_bytes=LARGEST_ANSWER)
        url = self.url + path
        response = self._exchanged("POST", url, form.encode(), limits)
        if response.status == _ONLY_GET:
            response = self._exchanged("GET", f"{url}?{form}", None, limits)
        if response.status != _OK:
            raise self._problem(response)
        return read_answer(response.body, self.url, self._bounds)

    def _exchanged(self, method: str, url: str, body: bytes | None, limits: Limits) -> Response:
        try:
            return exchange(method, url, self._headers(), body, limits)
        except NoAnswer as error:
            raise ServerUnreachable(str(error)) from error
        except TooLarge as error:
            raise AnswerTooLarge(f"{error}: ask for fewer series or a shorter time") from error

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
            "User-Agent": "relight",
        }
        if self._tenant:
            headers["X-Scope-OrgID"] = self._tenant
        if self._token_file:
            try:
                headers["Authorization"] = f"Bearer {read_token(self._token_file)}"
            except TokenUnread as error:
                raise AccessRefused(f"{self.url} cannot be asked: {error}") from error
        return headers

    def _problem(self, response: Response) -> MetricsError:
        told = f"{self.url} answered {response.status} ({refusal(response.body)})"
        if response.status in _QUERY_ERRORS:
            return QueryRefused(f"{told}: it does not understand the query")
        if response.status in _ACCESS_ERRORS:
            return AccessRefused(f"{told}: see token_file and tenant in the settings")
        if response.status == _MISSING or response.status in _REDIRECTS:
            return ServerFailed(f"{told}: the url is not that of a metrics server, without /api/v1")
        return ServerFailed(f"{told}: look at the server's own log")


def _unix(at: Instant) -> str:
    return f"{in_seconds(at):.3f}"
