"""``relight incidents``: what went wrong."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from relight.cli.asking import DEFAULT_URL, AsJson, Url, backend
from relight.cli.screens import show_json, show_table
from relight.clients.backend.answers import IncidentLine
from relight.model.instants import to_iso

app = typer.Typer(add_completion=False)

COLUMNS = ("job", "attempt", "opened", "phase", "domain", "suspects", "what happened")


@app.command()
def incidents(
    *,
    cluster: Annotated[str, typer.Option(help="Only of this cluster.")] = "",
    only_open: Annotated[bool, typer.Option("--open", help="Only of open jobs.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 100,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List what went wrong, in open jobs first."""
    filters = {"cluster": cluster, "open": "true" if only_open else ""}
    found = list(islice(backend(url).incidents(filters), limit))
    if as_json:
        show_json(found)
    else:
        show_table(COLUMNS, map(_row, found), "nothing went wrong")


def _row(line: IncidentLine) -> tuple[str, ...]:
    return (
        line.job,
        str(line.attempt),
        to_iso(line.opened_at)[:19] + "Z",
        line.phase.value,
        line.domain.value,
        ", ".join(line.suspects),
        line.says,
    )
