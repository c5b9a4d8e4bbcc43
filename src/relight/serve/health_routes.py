"""Whether relight lives and sees, and the page at the root."""

from __future__ import annotations

from html import escape

from litestar import MediaType, Response, get

from relight import __version__
from relight.clients.backend.answers import Alive, Health, Readiness
from relight.model.advice import Mode
from relight.serve.guards import has_token
from relight.serve.parameters import Served
from relight.serve.problems import AnyRequest

_MEANING = {
    Mode.MONITOR: "says what it would do, and touches nothing",
    Mode.APPROVE: "asks a person before it acts",
    Mode.ACT: "acts where its policies allow",
}


@get(
    "/healthz",
    sync_to_thread=False,
    summary="Ask whether the process lives",
    description="Always 200 while the process answers; needs no token and says no more.",
)
def healthz() -> Alive:
    """Say that the process lives."""
    return Alive(alive=True, version=__version__)


@get(
    "/readyz",
    sync_to_thread=True,
    summary="Ask whether relight sees all that it should",
    description=(
        "200 when every cluster is seen and nothing fails inside, else 503 with the reasons. Who "
        "cannot be asked beside (metrics, say) is told with either. Needs no token; with it, all "
        "is told in full."
    ),
)
def readyz(ports: Served, request: AnyRequest) -> Response[Readiness]:
    """Say whether every cluster is seen and nothing fails inside."""
    health = ports.daemon.health()
    readiness = _readiness(health if has_token(request) else health.public)
    return Response(readiness, status_code=200 if readiness.ready else 503)


def _readiness(health: Health) -> Readiness:
    reasons = health.reasons
    if not reasons:
        less = f"; {'; '.join(health.blind)}" if health.blind else ""
        return Readiness(
            ready=True,
            code="ready-but-blind" if health.blind else "ready",
            sentence=f"every cluster is seen, and nothing fails{less}",
            blind=health.blind,
            health=health,
        )
    return Readiness(
        ready=False,
        code="not-ready",
        sentence="; ".join(reasons),
        next_step=(
            "look at what is not seen or fails; until then relight does nothing about it "
            "(asked with the token, this page and the log tell all of it)"
        ),
        reasons=reasons,
        blind=health.blind,
        health=health,
    )


@get(
    "/",
    sync_to_thread=True,
    media_type=MediaType.HTML,
    include_in_schema=False,
    response_headers={"Content-Security-Policy": "default-src 'none'"},
)
def root(ports: Served) -> str:
    """Give a plain page: the mode of each cluster, and where to read on."""
    health = ports.daemon.health()
    clusters = "".join(
        f"<li>{escape(one.name)}: {one.mode.value} ({_MEANING[one.mode]}), "
        f"{'seen' if one.seen else 'not seen: ' + escape(one.why or 'no answer yet')}</li>"
        for one in health.clusters
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>relight</title>'
        f"<h1>relight {__version__}</h1>"
        f"<p>Mode: <strong>{health.mode.value}</strong>. relight {_MEANING[health.mode]}.</p>"
        f"<ul>{clusters or '<li>no cluster is configured</li>'}</ul>"
        '<p><a href="/schema">What can be asked</a> · <a href="/readyz">readiness</a></p>'
        "<p>Jobs and their logs are shown to those who have the token: use the command "
        "<code>relight jobs</code>.</p></html>"
    )
