from __future__ import annotations

import os

import pytest

from relight.testing.packages import InstallError
from relight.testing.slurm import packages


def test_a_machine_without_slurm_says_what_is_missing_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packages, "PROGRAMS", ("no-such-daemon",))
    why = packages.unavailable()
    assert why is not None
    assert "no-such-daemon" in why or os.geteuid() != 0
    assert "root" in why


def test_an_install_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InstallError):
        packages.install()
