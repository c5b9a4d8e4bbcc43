"""Tell, under dcgm-exporter's names, what /proc says of the ranks that run on pretend nodes.

A pretend node has no GPU: its ranks are processes of this machine. What a GPU would do follows
from what its rank does. One that computes (``train.py`` sleeps for it) keeps the tensor cores
active; one that waits for others in a socket would spin in a kernel of NCCL: fully used, no tensor
core active; one that is stopped leaves its GPU idle, and the share of the time that it is stopped
is taken off the clock. The Linux kernel tells all of it: the state in ``/proc/PID/stat``, and in
``/proc/PID/syscall`` the number of the call that the main thread is in.

    python gpu_exporter.py FILE FOLDER

It takes any free port and writes it into FILE. Only ranks whose command names FOLDER are told of:
another cluster on this machine may have the same nodes and jobs.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
SAMPLE_EVERY = 0.05
"""Seconds between two looks at a rank; a step of the pretend training takes several."""
KEPT = 60
"""Looks that are averaged: three seconds, as dcgm-exporter averages over its own interval."""
IN_SOCKET = frozenset({"0", "45", "7", "23", "44", "47"})
"""read, recvfrom, poll, select, sendto and recvmsg on x86-64."""
CLOCK = 1980.0
BASE_POWER = 120.0
SPIN_POWER = 180.0
TENSOR_POWER = 550.0
LINK_BYTES = 2.0e10


class Rank(NamedTuple):
    """Where a rank's process runs."""

    node: str
    gpu: str
    job: str


class Look(NamedTuple):
    """What a rank was doing: 1.0 or 0.0 each."""

    computes: float
    waits: float
    is_stopped: float


def ranks(below: str) -> dict[int, Rank]:
    """Return the ranks of pretend training in a folder that run now, by process id."""
    found: dict[int, Rank] = {}
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command = (folder / "cmdline").read_bytes()
            if b"train.py" not in command or below.encode() not in command:
                continue
            pairs = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended since
            continue
        known = dict(pair.decode(errors="replace").split("=", 1) for pair in pairs if b"=" in pair)
        node, gpu = known.get("SLURMD_NODENAME", ""), known.get("SLURM_LOCALID", "")
        if node and gpu and known.get("SLURM_STEP_ID", "").isdigit():
            found[int(folder.name)] = Rank(node, gpu, known.get("SLURM_JOB_ID", ""))
    return found


def look(pid: int) -> Look | None:
    """Return what a process does at this moment, None when it is gone."""
    folder = PROC / str(pid)
    try:
        state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        call = (folder / "syscall").read_text().split()[0]
    except (OSError, IndexError):
        return None
    if state in "Tt":
        return Look(0.0, 0.0, 1.0)
    return Look(0.0, 1.0, 0.0) if call in IN_SOCKET else Look(1.0, 0.0, 0.0)


class Watch:
    """Looks at every rank again and again, and keeps the last looks."""

    def __init__(self, below: str) -> None:
        self._below = below
        self._looks: dict[int, tuple[Rank, deque[Look]]] = {}
        self._lock = threading.Lock()

    def run(self) -> None:
        """Look for ever."""
        turn = 0
        while True:
            if turn % 10 == 0:
                found = ranks(self._below)
                with self._lock:
                    kept = {pid: one for pid, one in self._looks.items() if pid in found}
                    self._looks = {
                        pid: kept.get(pid, (rank, deque(maxlen=KEPT)))
                        for pid, rank in found.items()
                    }
            for pid, (_, looks) in list(self._looks.items()):
                seen = look(pid)
                if seen is not None:
                    looks.append(seen)
            turn += 1
            time.sleep(SAMPLE_EVERY)

    def metrics(self) -> str:
        """Return the text that a scrape gets."""
        with self._lock:
            watched = list(self._looks.values())
        lines = [line for rank, looks in watched if looks for line in gauges(rank, list(looks))]
        return "\n".join(lines) + "\n"


def gauges(rank: Rank, looks: list[Look]) -> list[str]:
    """Return the lines of one GPU."""
    computes, waits, stopped = (sum(part) / len(looks) for part in zip(*looks, strict=True))
    power = BASE_POWER + waits * SPIN_POWER + computes * TENSOR_POWER
    values = {
        "DCGM_FI_DEV_GPU_UTIL": 100 * (1 - stopped),
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1 - stopped,
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.5 * computes,
        "DCGM_FI_PROF_DRAM_ACTIVE": 0.4 * computes,
        "DCGM_FI_DEV_POWER_USAGE": power if stopped < 1 else BASE_POWER,
        "DCGM_FI_DEV_SM_CLOCK": CLOCK * (1 - stopped),
        "DCGM_FI_DEV_GPU_TEMP": 45 + 30 * computes,
        "DCGM_FI_DEV_XID_ERRORS": 0.0,
        "DCGM_FI_PROF_NVLINK_TX_BYTES": LINK_BYTES * computes,
        "DCGM_FI_PROF_PCIE_TX_BYTES": LINK_BYTES / 10 * computes,
    }
    labels = f'gpu="{rank.gpu}",UUID="GPU-{rank.node}-{rank.gpu}",Hostname="{rank.node}"'
    return [f"{name}{{{labels}}} {value:.4f}" for name, value in values.items()]


def handler(watch: Watch) -> type[BaseHTTPRequestHandler]:
    """Return what answers a scrape."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = watch.metrics().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    return Handler


def main(said: Path, below: str) -> None:
    """Serve until the process is ended, on a port that is written into ``said``."""
    watch = Watch(below)
    threading.Thread(target=watch.run, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(watch))
    said.write_text(f"{server.server_port}\n")
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
