"""What is said where the metrics servers of the tests cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from relight.testing.metrics import packages
from relight.testing.metrics.servers import Prometheus
from relight.testing.packages import InstallError


def test_a_machine_without_the_servers_says_what_is_missing_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packages, "PROGRAMS", ("no-such-server",))
    why = packages.unavailable()
    assert why is not None
    assert why.startswith("no-such-server not found: run `python -m relight.testing.metrics`")


def test_an_install_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InstallError):
        packages.install()


def test_a_server_that_does_not_start_says_what_it_said(tmp_path: Path) -> None:
    if (why := packages.unavailable()) is not None:
        pytest.skip(why)
    (tmp_path / "data").write_text("not a folder")
    with pytest.raises(RuntimeError, match="prometheus was not ready"):
        Prometheus.start(tmp_path)
