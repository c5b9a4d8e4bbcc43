"""``relight jobs``: every job, those that are open first."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from relight.cli.asking import DEFAULT_URL, AsJson, Url, backend
from relight.cli.screens import show_json, show_table
from relight.clients.backend.answers import JobLine
from relight.model.jobs import JobState

app = typer.Typer(add_completion=False)

COLUMNS = ("job", "attempt", "state", "step", "what relight says")


@app.command()
def jobs(  # noqa: PLR0913 - a filter each
    *,
    cluster: Annotated[str, typer.Option(help="Only of this cluster.")] = "",
    user: Annotated[str, typer.Option(help="Only of this user.")] = "",
    partition: Annotated[str, typer.Option(help="Only of this partition.")] = "",
    name: Annotated[str, typer.Option(help="Only of this name.")] = "",
    state: Annotated[JobState | None, typer.Option(help="Only in this state.")] = None,
    only_open: Annotated[
        bool, typer.Option("--open", help="Only those of which something can still come.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 100,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List jobs, those that are open first."""
    filters = {
        "cluster": cluster,
        "user": user,
        "partition": partition,
        "name": name,
        "state": state.value if state else "",
        "open": "true" if only_open else "",
    }
    found = list(islice(backend(url).jobs(filters), limit))
    if as_json:
        show_json(found)
    else:
        show_table(COLUMNS, map(_row, found), "no job matches")


def _row(line: JobLine) -> tuple[str, ...]:
    step = "" if line.step is None else str(line.step)
    return line.key, str(line.attempt), line.state.value, step, line.says
