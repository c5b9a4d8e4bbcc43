from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relight.settings.loading import load
from relight.testing.demo.sentences import NEXT_STEPS
from relight.testing.slurm import unavailable

COMMAND = [sys.executable, "-m", "relight.cli.app", "demo", "--fast"]


def play(tmp_path: Path, *options: str) -> str:
    """Play the demo to its end and return what it printed; its temporary folder is empty then."""
    done = subprocess.run(
        [*COMMAND, *options],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert not list(tmp_path.iterdir())
    assert "\x1b" not in done.stdout
    return done.stdout


def test_a_broken_gpu_is_first_only_talked_about_and_then_left_out(tmp_path: Path) -> None:
    monitor, act = play(tmp_path).split("Act 2 of 2: ACT")
    assert "Act 1 of 2: MONITOR" in monitor
    for told in (monitor, act):
        assert ">> 1: [rank1]: RuntimeError: CUDA error: uncorrectable ECC error" in told
        assert "Advice: Restart without node-02" in told
    assert "Order:" not in monitor
    assert "nothing was changed. The job is failed, not restarted" in monitor
    assert "Order: start again without node-02: done" in act
    assert "resumed from the checkpoint" in act
    assert "The job is completed, on node-01, node-03, node-04." in act
    assert "Plain requeue: 121 s" in act
    assert "relight run -- torchrun train.py" in act


def test_a_missing_module_is_not_tried_again(tmp_path: Path) -> None:
    told = play(tmp_path, "--fault", "module")
    assert "fused_layer_norm_cuda" in told
    assert "Not restarted: another try would fail the same way." in told
    assert "Order:" not in told


def test_the_settings_file_that_it_ends_with_can_be_used_as_it_is(tmp_path: Path) -> None:
    _, _, rest = NEXT_STEPS.partition("Write relight.toml:\n")
    toml, _, _ = rest.partition("  and start")
    file = tmp_path / "relight.toml"
    file.write_text("\n".join(line.strip() for line in toml.splitlines()))
    settings = load(file, {})
    assert not settings.can_change("main")
    assert len(settings.opt_ins) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_no_process_and_no_file(tmp_path: Path, number: signal.Signals) -> None:
    playing = subprocess.Popen(
        [*COMMAND[:-1]],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 20
    while not list(tmp_path.glob("relight-demo-*/training-1/checkpoints/iter_*")):
        assert time.monotonic() < until
        time.sleep(0.02)
    playing.send_signal(number)
    _, said = playing.communicate(timeout=20)
    assert playing.returncode == 130
    assert said.startswith(b"Interrupted")
    assert not list(tmp_path.iterdir())
    assert not [
        process
        for process in Path("/proc").glob("[0-9]*/cmdline")
        if str(tmp_path).encode() in _read(process)
    ]


def test_where_no_slurm_can_be_started_it_says_why(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("as another user there is nothing to take away")
    done = subprocess.run(
        ["setpriv", "--reuid", "nobody", "--clear-groups", *COMMAND, "--slurm"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "root" in done.stderr


@pytest.mark.slurm
def test_the_same_story_is_played_on_a_real_slurm() -> None:
    if (why := unavailable()) is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no real Slurm: {why}")
        pytest.skip(f"no real Slurm: {why}")
    done = subprocess.run(
        [*COMMAND, "--slurm"], capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Order: start again without node-02: done" in done.stdout


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
