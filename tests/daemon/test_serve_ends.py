"""``relight serve`` ends soon after it is told to, whatever it is doing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relight.clients.slurm.commands import Commands
from relight.clients.slurm.eyes import SlurmEyes
from relight.daemon.last_looks import EyesUntilStopped
from relight.daemon.loops import Loop
from relight.daemon.stop_signals import LONGEST_STOP
from relight.model.instants import EPOCH
from relight.model.seen import Seen, Unseen

SERVE = """
import atexit
from relight.cli.app import main
atexit.register(print, "the interpreter ended")
main()
"""

Starter = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Start ``relight serve`` over a Slurm whose ``squeue`` is a given shell script."""
    started: list[subprocess.Popen[bytes]] = []

    def start_one(squeue: str) -> subprocess.Popen[bytes]:
        script = tmp_path / "squeue"
        script.write_text(f"#!/bin/sh\n{squeue}\n")
        script.chmod(0o755)
        (tmp_path / "relight.toml").write_text(
            f'[cluster.main]\nkind = "slurm"\nbin_dir = "{tmp_path}"\npoll = "10m"\n'
            f'[store]\npath = "{tmp_path}/state"\n[serve]\nport = 0\n'
        )
        with (tmp_path / "said").open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-c", SERVE, "serve"],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, "RELIGHT_CONFIG": str(tmp_path / "relight.toml")},
            )
        started.append(process)
        return process

    yield start_one
    for process in started:
        process.kill()
        process.wait()


def wait_for_file(path: Path, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.01)


def test_a_scheduler_that_does_not_answer_keeps_nobody_waiting(
    start: Starter, tmp_path: Path
) -> None:
    process = start(f"touch {tmp_path}/asked; exec sleep 20")
    wait_for_file(tmp_path / "asked", process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONGEST_STOP) == 0
    said = (tmp_path / "said").read_text()
    assert "cut off by the end" in said
    assert "controller-main" in said
    assert "the interpreter ended" not in said, "which aborts a thread that is amid C++"


@pytest.mark.parametrize("pause", [0.1, 0.6])
def test_a_stop_during_the_start_ends_it_before_it_looks_at_anything(
    start: Starter, tmp_path: Path, pause: float
) -> None:
    process = start(f"touch {tmp_path}/asked; exit 1")
    wait_for_file(tmp_path / "state" / "lock", process)
    time.sleep(pause - 0.1)
    has_asked = (tmp_path / "asked").exists()
    process.send_signal(signal.SIGTERM)
    assert process.wait(LONGEST_STOP) in (0, -signal.SIGTERM)
    assert (tmp_path / "asked").exists() == has_asked


class StoppedAsItBegins(Loop):
    """A loop that is asked to stop between its look whether to go on and its turn."""

    def turn(self) -> float:
        """Be asked to stop; the beginning of the turn has already cleared the hurry of that."""
        self.ask_to_stop()
        self._hurried.clear()
        return 60.0


def test_a_stop_between_two_turns_is_not_waited_out() -> None:
    loop = StoppedAsItBegins("test", "testing", lambda: EPOCH)
    loop.start()
    assert loop.join(5)


class Waiting(Loop):
    """A loop whose turn lasts until somebody lets it go."""

    def __init__(self) -> None:
        super().__init__("test", "testing", lambda: EPOCH)
        self.let_go = threading.Event()

    def turn(self) -> float:
        """Last until let go."""
        self.let_go.wait()
        return 0.0


def test_a_join_tells_whether_the_last_turn_has_ended() -> None:
    loop = Waiting()
    assert loop.join(0)
    loop.start()
    loop.ask_to_stop()
    assert not loop.join(0.01)
    loop.let_go.set()
    assert loop.join(5)


def test_no_single_job_is_looked_at_once_relight_is_to_end(tmp_path: Path) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\nexit 1\n")
    squeue.chmod(0o755)
    eyes = EyesUntilStopped(SlurmEyes("main", Commands({}, bin_dir=tmp_path)))
    assert eyes.job("not an id") == Seen(None)
    eyes.stop()
    assert eyes.job("not an id") == Unseen("relight is ending")
