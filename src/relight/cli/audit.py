"""``relight audit``: the record of everything."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from relight.cli.asking import DEFAULT_URL, AsJson, Url, backend, job_named
from relight.cli.screens import show_json, show_table
from relight.model.audit import AuditEntry, Topic
from relight.model.instants import to_iso

app = typer.Typer(add_completion=False)

COLUMNS = ("at", "job", "attempt", "topic", "what")


@app.command()
def audit(  # noqa: PLR0913 - a filter each
    *,
    job: Annotated[str, typer.Option(help="Only of this job: main:123 or 123.")] = "",
    attempt: Annotated[int | None, typer.Option(min=0, help="Only of this attempt.")] = None,
    topic: Annotated[Topic | None, typer.Option(help="Only about this.")] = None,
    cluster: Annotated[str, typer.Option(help="Only of this cluster.")] = "",
    since: Annotated[str, typer.Option(help="Not before, such as 2026-01-31T12:00:00Z.")] = "",
    until: Annotated[str, typer.Option(help="Not after, such as 2026-01-31T12:00:00Z.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many at most, the newest ones.")] = 100,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """List the newest entries of the audit, in the order in which they were written."""
    client = backend(url)
    filters = {
        "job": str(job_named(client, job)) if job else "",
        "attempt": "" if attempt is None else str(attempt),
        "topic": topic.value if topic else "",
        "cluster": cluster,
        "since": since,
        "until": until,
        "order": "newest",
    }
    found = list(islice(client.audit(filters), limit))[::-1]
    if as_json:
        show_json(found)
    else:
        show_table(COLUMNS, map(_row, found), "the audit has no such entry")


def _row(entry: AuditEntry) -> tuple[str, ...]:
    return (
        to_iso(entry.at),
        str(entry.job),
        str(entry.attempt),
        entry.topic.value,
        entry.reason.sentence,
    )
