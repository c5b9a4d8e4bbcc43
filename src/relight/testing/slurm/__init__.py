"""A real Slurm cluster on this machine, for tests and demonstrations.

Four ``slurmd``, one ``slurmctld`` and one ``munged`` run as children of this process, with
ports, a folder and an authentication socket of their own, so several clusters can live side
by side. Needs Debian's packages and root: ``unavailable`` says what is missing.
"""

from __future__ import annotations

from relight.testing.slurm.clusters import ClusterError, SlurmCluster
from relight.testing.slurm.packages import install, unavailable

__all__ = ["ClusterError", "SlurmCluster", "install", "unavailable"]
