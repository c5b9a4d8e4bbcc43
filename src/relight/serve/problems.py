"""Every failure as the same three words: code, sentence, next step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import structlog
from litestar import MediaType, Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, ValidationException
from litestar.types import ExceptionHandlersMap

from relight.clients.backend.answers import Problem
from relight.serve.ports import Declined
from relight.store.errors import StoreBroken, StoreBusy, StoreRefused

AnyRequest = Request[object, object, State]

_CODES = {
    400: "bad-request",
    401: "no-token",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    413: "body-too-large",
    415: "not-json",
}
_NEXT_STEPS = {
    404: "see /schema for what can be asked",
    405: "see /schema for what can be asked",
    413: "send less at once",
}
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}


class NotThere(Exception):  # noqa: N818 - named by what it says
    """What a request names does not exist; shown as 404."""


class Wrong(Exception):  # noqa: N818 - named by what it says
    """A request says something that cannot be read; shown as 400."""


def answer(status: int, code: str, sentence: str, next_step: str = "") -> Response[Problem]:
    """Return a failure as a response."""
    problem = Problem(code=code, sentence=sentence, next_step=next_step)
    headers = _HEADERS.get(status)
    return Response(problem, status_code=status, media_type=MediaType.JSON, headers=headers)


def _not_there(_: AnyRequest, error: NotThere) -> Response[Problem]:
    return answer(404, "not-found", str(error), "list what there is with relight jobs")


def _wrong(_: AnyRequest, error: Wrong) -> Response[Problem]:
    return answer(400, "bad-request", str(error), "see /schema for what can be asked")


def _declined(_: AnyRequest, error: Declined) -> Response[Problem]:
    return answer(409, error.code, error.sentence, error.next_step)


def _refused(_: AnyRequest, error: StoreRefused) -> Response[Problem]:
    return answer(400, "bad-request", str(error), "see /schema for what can be asked")


def _busy(_: AnyRequest, error: StoreBusy) -> Response[Problem]:
    return answer(503, "store-busy", str(error), "try again in a second")


def _broken(request: AnyRequest, error: StoreBroken) -> Response[Problem]:
    structlog.get_logger().error("store-broken", path=request.url.path, error=str(error))
    return answer(503, "store-broken", str(error), "call whoever runs relight")


def _http(_: AnyRequest, error: HTTPException) -> Response[Problem]:
    status = error.status_code
    code = _CODES.get(status, f"http-{status}")
    sentence = error.detail
    if isinstance(error, ValidationException):
        sentence = "; ".join(_complaints(error.extra)) or sentence
    return answer(status, code, sentence[:2_000], _NEXT_STEPS.get(status, "correct the request"))


def _complaints(extra: object) -> list[str]:
    found = extra if isinstance(extra, list) else []
    return [
        f"{one.get('key', 'the body')}: {one.get('message', 'not understood')}"
        for one in found
        if isinstance(one, Mapping)
    ]


def _unexpected(request: AnyRequest, error: Exception) -> Response[Problem]:
    structlog.get_logger().error("request-failed", path=request.url.path, exc_info=error)
    return answer(
        500, "internal-error", "relight failed to answer", "look at the log of relight serve"
    )


def _several(request: AnyRequest, errors: ExceptionGroup[Exception]) -> Response[Problem]:
    """Answer for jobs of one report that failed: what a person must hear of comes first."""
    known: tuple[tuple[type[Exception], Callable[..., Response[Problem]]], ...] = (
        (StoreBroken, _broken),
        (StoreBusy, _busy),
        (StoreRefused, _refused),
        (Declined, _declined),
    )
    if errors.split(tuple(kind for kind, _ in known))[1] is None:
        for kind, tell in known:
            if first := next(_leaves(errors, kind), None):
                return tell(request, first)
    return _unexpected(request, errors)


def _leaves(error: Exception, kind: type[Exception]) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one, kind)
    elif isinstance(error, kind):
        yield error


def _too_deep(_: AnyRequest, __: RecursionError) -> Response[Problem]:
    return answer(400, "bad-request", "the body is nested too deeply", "send what /schema shows")


HANDLERS: ExceptionHandlersMap = {
    RecursionError: _too_deep,
    ExceptionGroup: _several,
    NotThere: _not_there,
    Wrong: _wrong,
    Declined: _declined,
    StoreRefused: _refused,
    StoreBusy: _busy,
    StoreBroken: _broken,
    HTTPException: _http,
    Exception: _unexpected,
}
