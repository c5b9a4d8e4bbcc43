"""Which database a command on this machine means."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from relight.settings.loading import load
from relight.store import as_url

StoreOption = Annotated[
    str, typer.Option("--store", help="The database: a path or a URL; else as the settings say.")
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="The settings file; without it the usual places are searched."),
]


def database(store: str, config: Path | None) -> str:
    """Return the URL of the database that is named, else of the one in the settings.

    Raises:
        SettingsError: none is named, and the settings cannot be read.

    """
    return as_url(store) if store else load(config, os.environ).store.database
