"""The HTTP interface as one application."""

from __future__ import annotations

from litestar import Litestar
from litestar.di import Provide
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin

from relight import __version__
from relight.serve.advice_routes import list_advice, put_status, say_word, show_advice
from relight.serve.guards import check
from relight.serve.health_routes import healthz, readyz, root
from relight.serve.job_routes import find_jobs, list_incidents, list_jobs, show_job
from relight.serve.ports import Ports
from relight.serve.problems import HANDLERS
from relight.serve.record_routes import list_audit, post_observation, post_outcome

ROUTES = (
    list_jobs,
    show_job,
    find_jobs,
    list_incidents,
    list_advice,
    show_advice,
    put_status,
    say_word,
    list_audit,
    post_observation,
    post_outcome,
    healthz,
    readyz,
    root,
)


def create_app(ports: Ports) -> Litestar:
    """Return the application over ``ports``; its description is at /schema (OpenAPI, JSON)."""

    def give_ports() -> Ports:
        return ports

    return Litestar(
        route_handlers=list(ROUTES),
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
            render_plugins=[JsonRenderPlugin(path="/openapi.json")],
        ),
    )
