"""``relight advice``: what relight advises."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from relight.cli.asking import DEFAULT_URL, AsJson, Url, backend
from relight.cli.screens import show_json, show_table
from relight.model.advice import Advice

app = typer.Typer(add_completion=False)

COLUMNS = ("attempt", "decision", "left out", "mode", "approval", "status", "why")


@app.command()
def advice(
    *,
    cluster: Annotated[str, typer.Option(help="Only of this cluster.")] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Every generation, also those that are over.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 100,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the advice that is open, or with --all every generation, the newest first."""
    client = backend(url)
    source = client.advice(cluster) if everything else client.active_advice(cluster)
    found = list(islice(source, limit))
    if as_json:
        show_json(found)
    else:
        show_table(COLUMNS, map(_row, found), "no advice is open")


def _row(one: Advice) -> tuple[str, ...]:
    return (
        one.id,
        one.decision.value,
        ", ".join(one.exclusions),
        one.mode.value,
        one.approval.value,
        one.status.disposition.value,
        one.reason.sentence,
    )
