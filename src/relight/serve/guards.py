"""What is checked before any route is entered.

There is no authentication yet, so only this machine may ask, and a page in a browser on this
machine may not: a foreign ``Host`` is a name that was pointed at us (DNS rebinding), a
foreign ``Origin`` a page of somebody else, and a body that is not JSON a form of such a page.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from litestar import Response

from relight.clients.backend.answers import Problem
from relight.serve.problems import AnyRequest, answer

_READS = frozenset({"GET", "HEAD", "OPTIONS"})


def is_loopback(host: str) -> bool:
    """Return whether a host name or address means this machine and no other."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check(request: AnyRequest) -> Response[Problem] | None:
    """Return why a request is turned away, None when it may go on."""
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
