"""Where the settings file is looked for. Apart, so that who has none loads no more than this."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

CONFIG = "RELIGHT_CONFIG"
"""The variable that names the file."""

PLACES = (Path("relight.toml"), Path("/etc/relight/relight.toml"))
"""Where the file is looked for when neither an argument nor RELIGHT_CONFIG names one."""


def find(
    path: Path | None, environ: Mapping[str, str], places: Sequence[Path] = PLACES
) -> Path | None:
    """Return the file to read, None when none is named and none is in its usual place."""
    if path is not None:
        return path
    if environ.get(CONFIG):
        return Path(environ[CONFIG])
    return next((place for place in places if os.path.lexists(place)), None)
