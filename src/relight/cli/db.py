"""``relight db``: look after the database."""

from __future__ import annotations

import typer

from relight.cli.asking import AsJson
from relight.cli.databases import ConfigOption, StoreOption, database
from relight.cli.screens import show_json, show_table
from relight.store import Store, upgrade

app = typer.Typer(name="db", help="Look after the database.", no_args_is_help=True)


@app.command("upgrade")
def bring_up(*, store: StoreOption = "", config: ConfigOption = None) -> None:
    """Bring the database to the tables that this version needs; copy the file first."""
    url = database(store, config)
    upgrade(url)
    typer.echo(f"{url} has the tables that this version needs")


@app.command("show")
def show_counts(
    *, store: StoreOption = "", config: ConfigOption = None, as_json: AsJson = False
) -> None:
    """Count what the database holds."""
    with Store.open(database(store, config), read_only=True) as opened:
        counts = opened.counts()
    if as_json:
        show_json(counts)
    else:
        rows = [(name, str(count)) for name, count in counts.items()]
        show_table(("what", "count"), rows, "nothing")
