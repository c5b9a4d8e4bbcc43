"""What is checked before any route is entered.

Only this machine may ask, of its users only those who can read the token, and a page in a
browser on this machine may not: a foreign ``Host`` is a name that was pointed at us (DNS
rebinding), a foreign ``Origin`` a page of somebody else, and a body that is not JSON a form of
such a page.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from litestar import Response

from relight.clients.backend.answers import Problem
from relight.serve.problems import AnyRequest, answer
from relight.serve.tokens import Token

ACCESS = "access"
"""What the application's state holds the token under."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


def is_loopback(host: str) -> bool:
    """Return whether a host name or address means this machine and no other."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def has_token(request: AnyRequest) -> bool:
    """Return whether a request carries the token."""
    return _token(request).is_in(request.headers.get("authorization", ""))


def check(request: AnyRequest) -> Response[Problem] | None:
    """Return why a request that needs no token is turned away, None when it may go on."""
    return _foreign(request) or _misformed(request)


def check_with_token(request: AnyRequest) -> Response[Problem] | None:
    """Return why a request that needs the token is turned away, None when it may go on."""
    return _foreign(request) or _nameless(request) or _misformed(request)


def _token(request: AnyRequest) -> Token:
    token = request.app.state[ACCESS]
    if not isinstance(token, Token):
        raise TypeError("the application was made without a token: use create_app")
    return token


def _nameless(request: AnyRequest) -> Response[Problem] | None:
    if has_token(request):
        return None
    is_given = "authorization" in request.headers
    what = "a token that is not this server's" if is_given else "no token"
    return answer(
        401,
        "no-token" if not is_given else "wrong-token",
        f"the request carries {what}",
        f"the token is in {_token(request).path}: whoever may read that file may ask; the relight "
        "command takes it from RELIGHT_TOKEN, or from the file that RELIGHT_TOKEN_FILE names; "
        'others send "Authorization: Bearer TOKEN"',
    )


def _foreign(request: AnyRequest) -> Response[Problem] | None:
    host = request.headers.get("host", "")
    if not is_loopback(_hostname(f"//{host}")):
        return answer(
            403,
            "foreign-host",
            f'this server does not answer as "{host[:80]}"',
            "ask for it as 127.0.0.1 or localhost",
        )
    origin = request.headers.get("origin")
    if origin is not None and not is_loopback(_hostname(origin)):
        return answer(
            403,
            "foreign-origin",
            f'a page of "{origin[:80]}" may not ask this server',
            "ask without a browser, or from a page that this server gave",
        )
    return None


def _misformed(request: AnyRequest) -> Response[Problem] | None:
    if request.method not in _READS and not _is_json(request):
        return answer(
            415, "not-json", "the body is not JSON", "send Content-Type: application/json"
        )
    return _unknown_parameter(request)


def _unknown_parameter(request: AnyRequest) -> Response[Problem] | None:
    known = request.route_handler.opt.get("query", ())
    for name in request.query_params:
        if name not in known:
            allowed = ", ".join(sorted(known)) or "none"
            return answer(
                400,
                "unknown-parameter",
                f'"{name[:80]}" is not a parameter of {request.url.path}',
                f"the parameters are: {allowed}",
            )
    return None


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_json(request: AnyRequest) -> bool:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json"
