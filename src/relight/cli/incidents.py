"""``relight incidents``: what went wrong."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from relight.cli.asking import DEFAULT_URL, AsJson, Url, backend
from relight.cli.screens import show_json, show_table
from relight.clients.backend.answers import IncidentLine
from relight.model.incidents import Phase
from relight.model.instants import to_iso

app = typer.Typer(add_completion=False)

COLUMNS = ("job", "attempt", "opened", "phase", "domain", "suspects", "what happened")


@app.command()
def incidents(
    *,
    cluster: Annotated[str, typer.Option(help="Only of this cluster.")] = "",
    only_open: Annotated[
        bool, typer.Option("--open", help="Only those that are not over.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 100,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List what went wrong, in open jobs first."""
    filters = {"cluster": cluster, "open": "true" if only_open else ""}
    told = backend(url).incidents(filters)
    if only_open:  # an open job has incidents that are over, too
        told = (one for one in told if one.phase is not Phase.CLOSED)
    found = list(islice(told, limit))
    if as_json:
        show_json(found)
    else:
        empty = "no incident is open" if only_open else "nothing went wrong"
        show_table(COLUMNS, map(_row, found), empty)


def _row(line: IncidentLine) -> tuple[str, ...]:
    return (
        line.job,
        str(line.attempt),
        to_iso(line.opened_at)[:19] + "Z",
        line.phase.value,
        line.domain.value,
        ", ".join(line.suspects),
        _what_happened(line),
    )


def _what_happened(line: IncidentLine) -> str:
    """Return what went wrong and, where it is over, how that ended: each only once."""
    if not line.closed or line.says in line.closed:
        return line.closed or line.says
    return f"{line.says.rstrip('.')}. {line.closed}" if line.says else line.closed
