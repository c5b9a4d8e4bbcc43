"""Slurm through its own commands: eyes on ``squeue`` and ``sinfo``, hands on ``scontrol``.

Only fields without text of the user's are read from columns; everything else comes from the
commands' JSON, because names, comments and paths may hold whatever a user likes, separators
and key words included. Text of ``scontrol show`` is never parsed.
"""

from __future__ import annotations

from relight.clients.slurm.commands import Commands
from relight.clients.slurm.eyes import SlurmEyes
from relight.clients.slurm.hands import SlurmHands

__all__ = ["Commands", "SlurmEyes", "SlurmHands"]
