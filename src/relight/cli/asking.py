"""What the commands that ask the backend share: where it is, and how a job is named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from relight.model.jobs import AttemptKey, JobKey

if TYPE_CHECKING:  # commands that may ask the backend, and mostly do not, load this file too
    from relight.clients.backend import BackendClient

DEFAULT_URL = ""

Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="RELIGHT_URL",
        help="Where the backend is; without it, where the settings let it listen.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
JobText = Annotated[
    str, typer.Argument(metavar="JOB", help="A job: main:123, or 123 where that is one job.")
]
AttemptText = Annotated[
    str,
    typer.Argument(
        metavar="ATTEMPT", help="An attempt: main:123-0 or 123-0; a job means its open advice."
    ),
]


def backend(url: str) -> BackendClient:
    """Return the backend at ``url``, to be asked with the token that the environment names.

    Raises:
        NoToken: what is named as a token is none.

    """
    from relight.cli.tokens import token_for  # noqa: PLC0415 - who asks nothing pays nothing
    from relight.clients.backend import BackendClient  # noqa: PLC0415 - likewise

    url = url or _url_of_settings()
    return BackendClient(url, token=token_for(url, os.environ))


def _url_of_settings() -> str:
    """Return where ``relight serve`` of this machine listens; its usual place without settings."""
    from relight.settings.loading import load  # noqa: PLC0415 - as above
    from relight.settings.problems import SettingsError  # noqa: PLC0415 - as above
    from relight.settings.records import Serve  # noqa: PLC0415 - as above

    try:
        serve = load(None, os.environ).serve
    except SettingsError:
        serve = Serve()
    host = f"[{serve.host}]" if ":" in serve.host else serve.host
    return f"http://{host}:{serve.port}"


def job_named(client: BackendClient, text: str) -> JobKey:
    """Return the job that a person means: a full key, or an id that one cluster has.

    Raises:
        typer.BadParameter: the text names no job, or jobs of several clusters.
        NotFound: no job bears the id.

    """
    if ":" in text:
        try:
            return JobKey.parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
    lines = client.jobs_by_scheduler_id(text)
    if len({line.cluster for line in lines}) > 1:
        choices = ", ".join(line.key for line in lines)
        raise typer.BadParameter(f"{text} is a job of several clusters: write one of {choices}")
    return JobKey.parse(lines[0].key)


def attempt_named(client: BackendClient, text: str) -> AttemptKey:
    """Return the attempt that a person means: ``main:123-0``, ``123-0``, or the open one of a job.

    Raises:
        typer.BadParameter: the text names no attempt, or jobs of several clusters.
        NotFound: there is no such job, or nothing waits for a word about it.

    """
    from relight.clients.backend import NotFound  # noqa: PLC0415 - as above

    job, dash, number = text.rpartition("-")
    if dash and number.isascii() and number.isdigit():
        return AttemptKey(job=job_named(client, job), attempt=int(number))
    case = client.job(job_named(client, text)).case
    for attempt in reversed(case.attempts):
        if attempt.advice is not None and attempt.advice.is_active:
            return attempt.advice.attempt
    raise NotFound(f"no advice on {case.key} is open: see relight why {case.key}")
