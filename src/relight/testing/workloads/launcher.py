"""Run one worker and restart it in place when it fails, as torchrun does on each node.

    launcher.py MAX_RESTARTS SCRIPT [ARGUMENT…]

The standard library only, for any ``python3`` from 3.9 on, beside ``train.py``, whose
``--launcher`` leads here. It prints the lines that torchrun prints, so that whoever reads
the log can tell a recovery in place from an end. The worker knows how often it was restarted
from ``TORCHELASTIC_RESTART_COUNT``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path


def now() -> datetime:
    """Return the local time, which is what torchrun prints."""
    return datetime.now().astimezone()  # noqa: TID251 - the log's own clock is this program's part


def say(level: str, source: str, text: str) -> None:
    """Write one line in the shape of PyTorch's own loggers."""
    moment = f"{now():%m%d %H:%M:%S.%f}"
    sys.stdout.write(f"{level}{moment} {os.getpid()} torch/distributed/elastic/{source}] {text}\n")
    sys.stdout.flush()


def give_up(script: str, code: int, pid: int) -> None:
    """Print torchrun's last word about a worker that has used up its restarts."""
    rank = os.environ.get("RELIGHT_RANK") or os.environ.get("SLURM_PROCID") or "0"
    node = os.environ.get("RELIGHT_NODE") or os.environ.get("SLURMD_NODENAME") or "localhost"
    line = "=" * 60
    sys.stdout.write(
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        f"{line}\n{Path(script).name} FAILED\n{'-' * 60}\n"
        "Failures:\n  <NO_OTHER_FAILURES>\n"
        f"{'-' * 60}\nRoot Cause (first observed failure):\n[0]:\n"
        f"  time      : {now():%Y-%m-%d_%H:%M:%S}\n"
        f"  host      : {node}\n"
        f"  rank      : {rank} (local_rank: 0)\n"
        f"  exitcode  : {code} (pid: {pid})\n"
        f"  error_file: <N/A>\n{line}\n"
    )
    sys.stdout.flush()


def launch(most_restarts: int, command: list[str]) -> int:
    """Run ``command`` until it succeeds or has failed once more than ``most_restarts`` times."""
    restart = 0
    while True:
        environment = {**os.environ, "TORCHELASTIC_RESTART_COUNT": str(restart)}
        worker = subprocess.Popen([sys.executable, *command], env=environment)
        code = worker.wait()
        if code == 0:
            return 0
        say(
            "E",
            "multiprocessing/api.py:874",
            f"failed (exitcode: {code}) local_rank: 0 (pid: {worker.pid}) "
            f"of binary: {sys.executable}",
        )
        left = most_restarts - restart
        if left <= 0:
            give_up(command[0], code, worker.pid)
            return 1
        say(
            "I",
            "agent/server/api.py:906",
            f"[default] Worker group FAILED. {left}/{most_restarts} attempts left; "
            "will restart worker group",
        )
        restart += 1


if __name__ == "__main__":
    sys.exit(launch(int(sys.argv[1]), sys.argv[2:]))
