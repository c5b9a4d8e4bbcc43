"""What metrics servers tell of the nodes of an attempt: discovered, fetched, handed to judging."""

from __future__ import annotations

from relight.sources.telemetry.sources import TelemetrySource, time_asked
from relight.sources.telemetry.surveys import Survey

__all__ = ["Survey", "TelemetrySource", "time_asked"]
