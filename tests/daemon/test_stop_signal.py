from __future__ import annotations

import subprocess
import sys

STOPPED_AT_EVERY_MOMENT = """
import os, signal, threading, time
from relight.daemon.serving import StopSignal

for number in range(400):
    with StopSignal() as stop:
        def send(pause=number * 2e-6):
            time.sleep(pause)
            os.kill(os.getpid(), signal.SIGTERM)
        sender = threading.Thread(target=send)
        sender.start()
        stop.wait()
        sender.join()
print("always")
"""


def test_a_stop_signal_ends_the_wait_whenever_it_comes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_AT_EVERY_MOMENT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "always\n", done.stderr
