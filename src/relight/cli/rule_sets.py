"""Which rules a command hears: the packaged ones, and the directories of the site."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from relight.settings.places import find

Rules = Annotated[
    list[Path] | None,
    typer.Option(
        "--rules",
        help="A directory of *.toml files that add or change rules; may be given again. "
        "Without it: rules.directories of the settings, where there are settings.",
    ),
]


def directories(given: Sequence[Path] | None) -> tuple[Path, ...]:
    """Return the directories of rules: those given, else those of the settings.

    Settings that cannot be read are told on standard error and left alone: a diagnosis needs
    none.
    """
    if given:
        return tuple(given)
    if find(None, os.environ) is None:
        return ()
    from relight.settings.loading import load  # noqa: PLC0415 - who has no settings pays nothing
    from relight.settings.problems import SettingsError  # noqa: PLC0415 - likewise

    try:
        settings = load(None, os.environ)
    except SettingsError as error:
        typer.echo(f"relight: the rules of the settings are not heard: {error}", err=True)
        return ()
    return tuple(Path(directory) for directory in settings.rules.directories)
