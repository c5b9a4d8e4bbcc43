from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from relight.daemon.stop_signals import CUT_OFF

STOPPED_AT_EVERY_MOMENT = """
import os, signal, threading, time
from relight.daemon.stop_signals import StopSignal

for number in range(400):
    with StopSignal(lambda: None) as stop:
        def send(pause=number * 2e-6):
            time.sleep(pause)
            {send}
        sender = threading.Thread(target=send)
        sender.start()
        stop.wait()
        sender.join()
print("always")
"""

TOLD_TO_END = """
import os, signal, threading, time
from relight.daemon.stop_signals import StopSignal, cut_off_late_end

def hang_here():
    threading.Event().wait()

with StopSignal(lambda: cut_off_late_end({longest}, 0.5)) as stop:
    os.kill(os.getpid(), signal.SIGTERM)
    stop.wait()
    assert stop.has_come
    {then}
"""


def ended(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    "send",
    [
        pytest.param("os.kill(os.getpid(), signal.SIGTERM)", id="to the process"),
        pytest.param(
            "signal.pthread_kill(threading.get_ident(), signal.SIGTERM)",
            id="taken by another thread than the one that waits",
        ),
    ],
)
def test_a_stop_signal_ends_the_wait_whenever_it_comes(send: str) -> None:
    done = ended(STOPPED_AT_EVERY_MOMENT.format(send=send))
    assert done.stdout == "always\n", done.stderr


@pytest.mark.parametrize(
    "then",
    [
        pytest.param("hang_here()", id="in the main thread"),
        pytest.param("threading.Thread(target=hang_here).start()", id="at the interpreter's exit"),
    ],
)
def test_a_process_that_does_not_end_says_where_it_hangs_and_is_gone(then: str) -> None:
    done = ended(TOLD_TO_END.format(longest=0.3, then=then))
    assert done.returncode == CUT_OFF, done.stderr
    assert "did not end within 0.3 s" in done.stderr
    assert "MainThread" in done.stderr
    assert "in hang_here" in done.stderr


def test_a_process_whose_last_words_nobody_reads_is_ended_by_the_system() -> None:
    fill = "os.set_blocking(2, False); os.write(2, bytes(1 << 20)); os.set_blocking(2, True)"
    program = TOLD_TO_END.format(longest=0.2, then=f"{fill}; hang_here()")
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    assert process.wait(30) == -signal.SIGALRM
    process.communicate()


def test_a_process_that_ends_in_time_says_nothing_and_heeds_no_second_signal() -> None:
    second = "[os.kill(os.getpid(), n) for n in (signal.SIGTERM, signal.SIGINT)]"
    done = ended(TOLD_TO_END.format(longest=20, then=second) + f"\n{second}")
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_stop_the_signals_are_given_back() -> None:
    done = ended(
        "import os, signal\n"
        "from relight.daemon.stop_signals import StopSignal\n"
        "with StopSignal(lambda: None) as stop:\n"
        "    assert not stop.has_come\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    assert done.returncode == -signal.SIGTERM, done.stderr
