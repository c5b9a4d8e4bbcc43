"""The HTTP interface as one application."""

from __future__ import annotations

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from relight import __version__
from relight.serve.advice_routes import list_advice, put_status, say_word, show_advice
from relight.serve.guards import ACCESS, check, check_with_token
from relight.serve.health_routes import healthz, readyz, root
from relight.serve.job_routes import find_jobs, list_incidents, list_jobs, show_job
from relight.serve.ports import Ports
from relight.serve.problems import HANDLERS
from relight.serve.record_routes import list_audit, post_observation, post_outcome
from relight.serve.tokens import Token

OPEN = (healthz, readyz, root)
"""What needs no token, beside /schema."""

FOR_PEOPLE = (
    list_jobs,
    show_job,
    find_jobs,
    list_incidents,
    list_advice,
    show_advice,
    say_word,
    list_audit,
)
"""What needs the token."""

FOR_CONTROLLERS = (put_status, post_observation, post_outcome)
"""What moves decisions as a scheduler's own word does: only for a separate controller."""


def create_app(ports: Ports, token: Token, *, controllers: bool) -> Litestar:
    """Return the application over ``ports``; its description is at /schema (OpenAPI, JSON).

    Without ``controllers`` nobody can report to it: the routes for that do not exist.
    """

    def give_ports() -> Ports:
        return ports

    closed = Router(
        path="/",
        route_handlers=[*FOR_PEOPLE, *(FOR_CONTROLLERS if controllers else ())],
        before_request=check_with_token,
        security=[{"token": []}],
    )
    app = Litestar(
        route_handlers=[*OPEN, closed],
        dependencies={"ports": Provide(give_ports, sync_to_thread=False)},
        before_request=check,
        exception_handlers=HANDLERS,
        logging_config=None,
        request_max_body_size=1024 * 1024,
        openapi_config=OpenAPIConfig(
            title="relight",
            version=__version__,
            description=(
                "Brings distributed training back to life after a failure. Failures of a "
                "request are JSON with code, sentence and next_step."
            ),
            path="/schema",
            components=Components(
                security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}
            ),
            render_plugins=[JsonRenderPlugin(path="/openapi.json")],
        ),
    )
    app.state[ACCESS] = token
    return app
