"""Ports for the daemons of one cluster."""

from __future__ import annotations

import contextlib
import os
import socket

from relight.testing.slurm.configuration import address

_PORTS_FROM = 20_000
_PORTS_TO = 32_000


def free_ports(count: int) -> tuple[int, ...]:
    """Return ports that nobody listens on, below those that the kernel hands out by itself.

    Starting at a place of this process's own keeps suites that run side by side apart.

    Raises:
        OSError: there are not as many.

    """
    ports: list[int] = []
    size = _PORTS_TO - _PORTS_FROM
    for step in range(size):
        port = _PORTS_FROM + (os.getpid() * 16 + step) % size
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((address(), port))
            ports.append(port)
        if len(ports) == count:
            return tuple(ports)
    raise OSError(f"no {count} free ports between {_PORTS_FROM} and {_PORTS_TO}: end something")
