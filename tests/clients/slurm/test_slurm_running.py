from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from relight.clients.running import NotRun, Ran, run

ENV = {"PATH": os.defpath}


def shell(script: str, *, timeout: float = 5, most_output: int = 1 << 20) -> Ran | NotRun:
    return run(["sh", "-c", script], env=ENV, timeout=timeout, most_output=most_output)


def test_output_errors_and_status_come_back() -> None:
    assert shell("echo out; echo err >&2; exit 3") == Ran(3, b"out\n", b"err\n")


def test_a_program_ended_by_a_signal_has_a_negative_status() -> None:
    ran = shell("kill -9 $$")
    assert isinstance(ran, Ran)
    assert ran.status == -9


def test_a_program_that_is_missing_was_not_started() -> None:
    ran = run(["no-such-program"], env=ENV, timeout=1, most_output=1)
    assert isinstance(ran, NotRun)
    assert not ran.started
    assert "no-such-program" in ran.why


def test_an_argument_with_a_nul_byte_was_not_started() -> None:
    ran = run(["echo", "a\0b"], env=ENV, timeout=1, most_output=1)
    assert isinstance(ran, NotRun)
    assert not ran.started


def test_input_is_empty() -> None:
    assert shell("cat") == Ran(0, b"", b"")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("sleep 60", id="silent"),
        pytest.param("exec >&- 2>&-; sleep 60", id="with its output closed"),
        pytest.param("trap '' TERM INT; sleep 60 & wait", id="ignoring signals, with a child"),
        pytest.param("sleep 60 & exit 0", id="ended, with a child that keeps its output open"),
    ],
)
def test_a_program_that_hangs_is_killed_with_its_group(script: str, tmp_path: Path) -> None:
    marker = f"{tmp_path}/marker"
    before = time.monotonic()
    ran = run(
        ["sh", "-c", script],
        env={**ENV, "RELIGHT_MARKER": marker},
        timeout=0.3,
        most_output=1 << 20,
    )
    assert time.monotonic() - before < 2
    assert isinstance(ran, NotRun)
    assert ran.started
    assert "did not end within 0.3 s" in ran.why
    deadline = time.monotonic() + 2
    while _living_with(marker) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _living_with(marker)


def test_endless_output_is_cut_short() -> None:
    ran = shell("yes", most_output=1 << 20)
    assert isinstance(ran, NotRun)
    assert "printed more than 1048576 bytes" in ran.why


def test_endless_errors_do_not_fill_the_memory() -> None:
    ran = shell("head -c 50000000 /dev/zero >&2; echo done")
    assert isinstance(ran, Ran)
    assert ran.output == b"done\n"
    assert len(ran.errors) <= 1 << 18


def _living_with(marker: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"RELIGHT_MARKER={marker}".encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found
