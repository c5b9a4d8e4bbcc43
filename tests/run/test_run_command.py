from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

RELIGHT = [sys.executable, "-m", "relight.cli.app", "run"]
FAILS_ONCE = 'test "$RELIGHT_RESTART_COUNT" -gt 0 || exit 3; echo "attempt $RELIGHT_RESTART_COUNT"'


def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONUNBUFFERED": "1"}


def run(tmp_path: Path, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RELIGHT, *words],
        env=environment(tmp_path),
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )


def start(tmp_path: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*RELIGHT, *words],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def own_lines(stderr: bytes) -> list[str]:
    lines = stderr.decode(errors="replace").splitlines()
    return [line.removeprefix("relight: ") for line in lines if line.startswith("relight: ")]


def wait_until(is_so: Callable[[], bool], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_output_is_passed_on_byte_for_byte(tmp_path: Path) -> None:
    out = b"10%\r20%\r30%\n\xff\xfe\x00\x1b[31mred" + bytes(range(256)) * 4_000
    err = b"\rloading \xe2\x82"
    program = (
        "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data);"
        f"sys.stderr.buffer.write({err!r})"
    )
    done = run(tmp_path, "--", sys.executable, "-c", program, stdin=out)
    assert (done.returncode, done.stdout, done.stderr) == (0, out, err)


def test_output_comes_through_at_once(tmp_path: Path) -> None:
    program = "import time\nwhile True: print(time.monotonic()); time.sleep(0.05)"
    running = start(tmp_path, "--", sys.executable, "-u", "-c", program)
    assert running.stdout is not None
    delays = []
    for _ in range(20):
        line = running.stdout.readline()
        delays.append(time.monotonic() - float(line))
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=20)
    assert sorted(delays[5:])[7] < 0.1


def test_nothing_is_said_or_kept_of_a_run_that_goes_well(tmp_path: Path) -> None:
    done = run(tmp_path, "--", "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not list(tmp_path.glob("state/relight/runs/*"))


def test_a_failed_command_is_started_again_and_told_which_attempt_it_is(tmp_path: Path) -> None:
    done = run(tmp_path, "--logs", str(tmp_path / "logs"), "--", "sh", "-c", FAILS_ONCE)
    assert (done.returncode, done.stdout) == (0, b"attempt 1\n")
    said = "\n".join(own_lines(done.stderr))
    assert "Attempt 0 failed with exit code 3" in said
    assert "Restart 1 of 3." in said
    assert str(tmp_path / "logs") in said
    assert [file.read_bytes() for file in tmp_path.glob("logs/*/stdout.log")] == [b"attempt 1\n"]


def test_in_monitor_mode_it_is_only_said(tmp_path: Path) -> None:
    done = run(tmp_path, "--monitor", "--", "sh", "-c", FAILS_ONCE)
    assert (done.returncode, done.stdout) == (3, b"")
    assert any(line.startswith("Restart: ") for line in own_lines(done.stderr))


def test_an_error_that_would_only_come_again_ends_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, "--", sys.executable, "-c", "import module_that_is_not_there")
    said = own_lines(done.stderr)
    assert done.returncode == 1
    assert any(line.startswith("» ModuleNotFoundError") for line in said)
    assert not any(line.startswith("Restart") for line in said)


def test_no_more_restarts_than_allowed(tmp_path: Path) -> None:
    done = run(tmp_path, "--max-restarts", "0", "--", "sh", "-c", "echo x; exit 9")
    assert (done.returncode, done.stdout) == (9, b"x\n")


def test_a_policy_of_the_settings_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "relight.toml"
    file.write_text('[cluster.main]\nkind = "slurm"\n[policy.careful]\nmax_restarts = 0\n')
    words = ("--config", str(file), "--policy")
    done = run(tmp_path, *words, "careful", "--", "sh", "-c", "echo x; exit 9")
    assert (done.returncode, done.stdout) == (9, b"x\n")
    missing = run(tmp_path, *words, "carefull", "--", "true")
    assert missing.returncode == 1
    assert b"careful" in missing.stderr


def test_a_death_by_signal_is_128_and_the_signal(tmp_path: Path) -> None:
    done = run(tmp_path, "--max-restarts", "0", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137


@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/etc/passwd", 126)])
def test_what_cannot_be_run_is_said(tmp_path: Path, program: str, code: int) -> None:
    done = run(tmp_path, "--", program)
    assert done.returncode == code
    assert program in own_lines(done.stderr)[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_goes_to_the_command_and_ends_the_run(
    tmp_path: Path, number: signal.Signals
) -> None:
    script = f"trap 'echo caught; exit 41' {number}; echo ready; while :; do sleep 0.02; done"
    running = start(tmp_path, "--", "sh", "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == b"ready\n"
    running.send_signal(number)
    out, err = running.communicate(timeout=20)
    assert (running.returncode, out) == (41, b"caught\n")
    assert not any(line.startswith("Restart") for line in own_lines(err))


def test_a_second_interrupt_kills_what_ignores_the_first(tmp_path: Path) -> None:
    script = "trap '' INT; echo ready; while :; do sleep 0.02; done"
    running = start(tmp_path, "--", "sh", "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == b"ready\n"
    running.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert running.poll() is None
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=20)
    assert running.returncode == 137


def test_the_command_goes_on_when_relight_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "beats"
    script = f"echo ready; for i in $(seq 200); do echo $i >>{file}; sleep 0.02; done"
    running = start(tmp_path, "--logs", str(tmp_path / "logs"), "--", "sh", "-c", script)
    assert running.stdout is not None
    assert running.stdout.readline() == b"ready\n"
    (group,) = (int(one.read_text()) for one in tmp_path.glob("logs/*/pid-0"))
    running.kill()
    running.communicate(timeout=20)
    try:
        before = len(file.read_text().split())
        wait_until(lambda: len(file.read_text().split()) > before + 10)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def test_a_reader_that_leaves_ends_the_run(tmp_path: Path) -> None:
    running = start(tmp_path, "--", "yes")
    assert running.stdout is not None
    assert running.stdout.read(2) == b"y\n"
    running.stdout.close()
    assert running.wait(timeout=20) == 143
    assert running.stderr is not None
    running.stderr.close()
