"""``relight advice``: what relight advises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from relight.cli.asking import DEFAULT_URL, AsJson, Url, backend
from relight.cli.screens import show_json, show_table
from relight.model.advice import Advice, Disposition, ReconciliationStatus, StatusReason

if TYPE_CHECKING:  # loaded only by who asks
    from relight.clients.backend import BackendClient

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
    """List the advice that is open and what is planned, or with --all every generation.

    A plan has generation 0: nobody follows it, and it tells what will be advised, and when.
    """
    client = backend(url)
    if everything:
        source = _as_they_are(client.advice(cluster))
    else:
        source = chain(client.active_advice(cluster), _planned(client, cluster))
    found = list(islice(source, limit))
    if as_json:
        show_json(found)
    else:
        show_table(COLUMNS, map(_row, found), "no advice is open, and none is planned")


def _planned(client: BackendClient, cluster: str) -> Iterator[Advice]:
    for line in client.jobs({"cluster": cluster, "open": "true"}):
        if line.planned is not None:
            yield line.planned


def _as_they_are(generations: Iterable[Advice]) -> Iterator[Advice]:
    """Yield generations, the newest first; a newer one of an attempt has ended those before it."""
    newer: set[str] = set()
    for one in generations:
        if one.id in newer and one.is_active:
            over = ReconciliationStatus(
                disposition=Disposition.ABANDONED,
                reason=StatusReason.SUPERSEDED,
                sentence="A newer generation of the advice took its place.",
                generation=one.generation,
            )
            yield msgspec.structs.replace(one, status=over)
        else:
            yield one
        newer.add(one.id)


def _row(one: Advice) -> tuple[str, ...]:
    return (
        one.id,
        one.decision.value,
        ", ".join(one.exclusions),
        one.mode.value,
        one.approval.value,
        one.status.disposition.value if one.generation else "planned",
        one.reason.sentence,
    )
