"""Install the metrics servers on this machine: ``python -m relight.testing.metrics``."""

from __future__ import annotations

from relight.testing.metrics.packages import install

install()
