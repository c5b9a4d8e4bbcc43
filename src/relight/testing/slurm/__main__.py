"""Install Slurm on this machine: ``python -m relight.testing.slurm``."""

from __future__ import annotations

from relight.testing.slurm.packages import install

install()
