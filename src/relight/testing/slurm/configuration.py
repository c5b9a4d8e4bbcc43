"""The files that a small cluster on one machine is configured with."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

GPUS_PER_NODE = 8
CPUS_PER_NODE = 8


def node_names(count: int) -> tuple[str, ...]:
    """Return ``node-01``, ``node-02``, … for ``count`` nodes."""
    return tuple(f"node-{number:02d}" for number in range(1, count + 1))


def address() -> str:
    """Return the loopback address of the daemons: the host name's own, else 127.0.0.1.

    Slurm listens on one address only (CommunicationParameters=NoInAddrAny) if that is the one
    that the host name resolves to, often 127.0.1.1; where it resolves to no loopback address,
    the daemons listen on every address.
    """
    return _own_address() or "127.0.0.1"


def write(
    folder: Path, *, ports: tuple[int, ...], nodes: int, settings: Mapping[str, str], old: bool
) -> Path:
    """Write slurm.conf, gres.conf and, unless ``old``, cgroup.conf; return slurm.conf's path.

    ``ports`` are slurmctld's and then one a node. ``settings`` replace or add keys of
    slurm.conf. ``old`` is Slurm before 24.05, which refuses ``CgroupPlugin=disabled``.
    """
    gpus = folder / "gpus"
    gpus.mkdir()
    for number in range(GPUS_PER_NODE):
        (gpus / f"nvidia{number}").touch()
    devices = f"{gpus}/nvidia[0-{GPUS_PER_NODE - 1}]"
    (folder / "gres.conf").write_text(
        f"NodeName={','.join(node_names(nodes))} Name=gpu File={devices}\n"
    )
    if not old:
        (folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    keys = {**_keys(folder, ports[0]), **settings}
    lines = [f"{key}={value}" for key, value in keys.items()]
    lines += [
        _node_line(name, port) for name, port in zip(node_names(nodes), ports[1:], strict=True)
    ]
    lines.append("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
    path = folder / "slurm.conf"
    path.write_text("\n".join(lines) + "\n")
    return path


def _own_address() -> str | None:
    try:
        found = socket.gethostbyname(socket.gethostname())
    except OSError:
        return None
    return found if found.startswith("127.") else None


def _keys(folder: Path, port: int) -> dict[str, str]:
    return {
        "ClusterName": "test",
        "SlurmctldHost": f"{socket.gethostname().partition('.')[0]}({address()})",
        "SlurmctldPort": str(port),
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge/socket",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        "SlurmdParameters": "config_overrides",
        **({"CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny"} if _own_address() else {}),
        "ReturnToService": "1",
        "KillWait": "3",
        "MessageTimeout": "5",
        "SlurmdTimeout": "20",
        "MailProg": "/bin/true",
        "MpiDefault": "none",
        "GresTypes": "gpu",
        "SchedulerParameters": "bf_interval=2",
        "StateSaveLocation": f"{folder}/state",
        "SlurmctldPidFile": f"{folder}/slurmctld.pid",
        "SlurmctldLogFile": f"{folder}/slurmctld.log",
        "SlurmdSpoolDir": f"{folder}/spool/%n",
        "SlurmdPidFile": f"{folder}/slurmd-%n.pid",
        "SlurmdLogFile": f"{folder}/slurmd-%n.log",
    }


def _node_line(name: str, port: int) -> str:
    return (
        f"NodeName={name} NodeHostname=localhost NodeAddr={address()} Port={port} "
        f"CPUs={CPUS_PER_NODE} RealMemory=2000 Gres=gpu:{GPUS_PER_NODE}"
    )
