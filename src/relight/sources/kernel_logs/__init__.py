"""The kernel logs of nodes, gathered in files by a relay such as rsyslog or journald.

The files are the operator's, named in the settings, and read with relight's own rights: regular
files only, never blocking, from their end and bounded.
"""

from __future__ import annotations

from relight.sources.kernel_logs.looking import KernelLogs

__all__ = ["KernelLogs"]
