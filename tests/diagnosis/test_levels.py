"""A level belongs to the words behind it, and an outer one says nothing of what another wrote."""

from __future__ import annotations

import pytest

from relight.diagnosis.levels import is_mere_remark

OUTER = (
    "2025-03-01 10:00:00,123 - INFO - {}",
    "2025-03-01 10:00:00.123 | INFO     | train:run:88 - {}",
    "INFO:root:{}",
    "[2025-03-01 10:00:00] [INFO] [launch.py:88:main] {}",
    "I0301 10:00:00.123456 77 wrap.cc:8] {}",
)
SERIOUS = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "srun: error: n3: task 3: Exited with exit code 1",
    "gpu-1:12:34 [0] NCCL WARN NET/OFI Unable to create an endpoint",
    "[1,3]<stderr>:[host:61444] Signal: Segmentation fault (11)",
    "kernel: NVRM: Xid (PCI:0000:db:00): 79, pid=1, GPU has fallen off the bus.",
    "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-03-01T10:00:00 ***",
    "2m  Warning  Evicted  pod/train-0  The node was low on resource: memory.",
)


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("line", SERIOUS)
def test_an_outer_level_of_information_hides_nothing(outer: str, line: str) -> None:
    assert not is_mere_remark(outer.format(line))


@pytest.mark.parametrize(
    ("line", "mere"),
    [
        ("plain words", False),
        ("[2026-03-01] [INFO] CPU Virtual Memory: used = 30.6 GB, percent = 97.9%", True),
        ("[2026-03-01] [INFO] cannot reach the hub, trying again", True),
        ("2026-03-01 WARNING hub.py - no such file, using the default", True),
        ("2026-03-01 WARNING - RuntimeError: it broke", False),
        ("2026-03-01 ERROR hub.py - refused (WARNING: last try)", False),
        ("2026-03-01 ERROR - stderr - UserWarning: it is deprecated", True),
        ("2026-03-01 INFO - WARNING: no such file, using the default", True),
        ("NCCL WARN Call to ibv_reg_mr failed", False),
        ("gpu-1:1:1 [0] NCCL INFO Connected all rings", False),
        ("W1210 02:31:05.120340 77 api.py:9] Sending process 7 closing signal", True),
        ("", False),
    ],
)
def test_a_line_is_a_mere_remark_where_its_innermost_level_and_words_say_so(
    line: str, *, mere: bool
) -> None:
    assert is_mere_remark(line) is mere


def test_what_is_known_to_tell_a_cause_stays_one_in_a_line_of_information() -> None:
    line = "INFO:root:There is room for two processes on this host"
    assert is_mere_remark(line)
    assert not is_mere_remark(line, tells_a_cause=True)
    again = f"{line}, trying again"
    assert is_mere_remark(again, tells_a_cause=True)
