"""Real metrics servers on the loopback: Prometheus and VictoriaMetrics, and something to scrape."""

from __future__ import annotations

from relight.testing.metrics.exporters import Exporter
from relight.testing.metrics.packages import unavailable
from relight.testing.metrics.past import Told, steady
from relight.testing.metrics.servers import Prometheus, VictoriaMetrics

__all__ = ["Exporter", "Prometheus", "Told", "VictoriaMetrics", "steady", "unavailable"]
