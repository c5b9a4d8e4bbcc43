"""``relight doctor``: look at everything that relight needs, and say what to do about it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from relight.cli.asking import AsJson
from relight.cli.config import ConfigOption
from relight.cli.failures import FAILED
from relight.cli.screens import show_json, show_table
from relight.daemon.clock import now
from relight.settings.loading import load
from relight.settings.problems import SettingsError

if TYPE_CHECKING:  # what the checks need is loaded only when they are made
    from relight.cli.checkups import Check

app = typer.Typer(name="doctor")


@app.command()
def doctor(*, config: ConfigOption = None, as_json: AsJson = False) -> None:
    """Look at everything that relight needs, and say what to do about it.

    Nothing is changed. Ends with 1 when there is a problem, with 0 when there are warnings at most.
    """
    from relight.cli.checkups import Standing  # noqa: PLC0415 - --help needs no check

    checks = tuple(_checks(config))
    if as_json:
        show_json({"checks": checks})
    else:
        rows = [(one.standing, one.what, f"{one.sentence} {one.cure}".strip()) for one in checks]
        show_table(("", "what", "how it is"), rows, "nothing was looked at")
    if any(one.standing is Standing.PROBLEM for one in checks):
        raise typer.Exit(FAILED)


def _checks(config: Path | None) -> Iterator[Check]:
    from relight.cli.checkups import Check, Standing, every_check  # noqa: PLC0415 - as above

    try:
        settings = load(config, os.environ)
    except SettingsError as error:
        for problem in error.problems:
            yield Check(what="settings", standing=Standing.PROBLEM, sentence=f"{problem}.")
        return
    yield Check(what="settings", standing=Standing.OK, sentence=f"{settings.origin} can be used.")
    yield from every_check(settings, os.environ, now())
