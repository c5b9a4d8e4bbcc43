"""``relight replay``: make every past decision again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from relight.cli.asking import AsJson
from relight.cli.databases import ConfigOption, StoreOption, database
from relight.cli.screens import show_json, show_lines
from relight.engine.replaying import ReplayReport, compare, replay
from relight.model.advice import Advice
from relight.model.audit import AuditEntry
from relight.settings.loading import load
from relight.store import AuditFilters, Store

app = typer.Typer(add_completion=False)

_MOST_SHOWN = 50


@app.command("replay")
def replay_all(
    *,
    policy: Annotated[
        Path | None, typer.Option(help="Decide under the policies of this settings file instead.")
    ] = None,
    store: StoreOption = "",
    config: ConfigOption = None,
    as_json: AsJson = False,
) -> None:
    """Make every past decision again from the journal, and list what comes out otherwise.

    Exits with 1 when something differs although the policies are those of the time.
    """
    instead = load(policy, os.environ).book() if policy else None
    with Store.open(database(store, config), read_only=True) as opened:
        replayed = replay(opened.journal(), opened.policy_books(), instead)
        report = compare(replayed, _advice(opened), _entries(opened))
    if as_json:
        show_json(report)
    else:
        _show(report)
    if instead is None and not report.is_same:
        raise typer.Exit(1)


def _show(report: ReplayReport) -> None:
    counted = f"{report.records} records, {report.advice} advice, {report.entries} audit entries"
    verdict = "all as stored" if report.is_same else f"{len(report.differences)} differ"
    show_lines([(0, "", f"{counted}: {verdict}")])
    for one in report.differences[:_MOST_SHOWN]:
        show_lines([(0, "bold", one.about), (2, "", f"was {one.was}"), (2, "", f"now {one.now}")])
    if len(report.differences) > _MOST_SHOWN:
        show_lines([(0, "", "more with --json")])


def _advice(store: Store) -> Iterator[Advice]:
    page = store.advice(limit=1_000)
    yield from page.items
    while page.next:
        page = store.advice(limit=1_000, cursor=page.next)
        yield from page.items


def _entries(store: Store) -> Iterator[AuditEntry]:
    page = store.audit(AuditFilters(), 1_000)
    yield from page.items
    while page.next:
        page = store.audit(AuditFilters(), 1_000, page.next)
        yield from page.items
