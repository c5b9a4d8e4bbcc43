"""The zone that this machine, and with it most relays, writes times in."""

from __future__ import annotations

import os
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LOCAL = Path("/etc/localtime")


def local_zone(environ: dict[str, str] | None = None, local: Path = _LOCAL) -> tzinfo:
    """Return this machine's zone, by TZ or else its localtime file; UTC where neither tells."""
    named = (os.environ if environ is None else environ).get("TZ", "").lstrip(":")
    try:
        if named:
            return ZoneInfo(named)
        with local.open("rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC
