from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from relight.testing.workloads import TRAIN

PROGRESS = re.compile(
    r" \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}\] iteration +(?P<step>\d+)/ +\d+"
    r" \| consumed samples: +\d+ \| elapsed time per iteration \(ms\): \d+\.\d"
    r" \| throughput per GPU \(TFLOP/s/GPU\): \d+\.\d \| learning rate: \d\.\d{6}E[+-]\d\d"
    r" \| global batch size: +\d+ \| lm loss: \d\.\d{6}E[+-]\d\d \| loss scale: 1\.0"
    r" \| grad norm: \d+\.\d{3} \| num zeros: 0 \| params norm: \d+\.\d{3}"
    r" \| number of skipped iterations:   0 \| number of nan iterations:   0 \|"
)
CLOSED = re.compile(
    r"\[rank\d\]: RuntimeError: \[\S+/gloo/transport/tcp/pair\.cc:\d+\] "
    r"Connection closed by peer \[127\.0\.0\.1\]:[1-9]\d*"
)


@dataclass(frozen=True, slots=True)
class Ran:
    """How each rank ended, and what it wrote."""

    codes: list[int]
    texts: list[str]

    @property
    def steps(self) -> list[int]:
        """Return the steps that were printed."""
        return [int(match["step"]) for match in PROGRESS.finditer(self.texts[-1])]


def train(folder: Path, *more: str, attempt: int = 0, world: int = 3) -> Ran:
    fixed = ["--folder", str(folder), "--step-seconds", "0.005", "--most-seconds", "30"]
    command = [sys.executable, str(TRAIN), *fixed, "--checkpoint-every", "4", *more]
    ranks = [
        subprocess.Popen(
            command,
            env={
                **os.environ,
                "RELIGHT_RANK": str(rank),
                "RELIGHT_WORLD": str(world),
                "RELIGHT_NODE": f"node-0{rank + 1}",
                "RELIGHT_RESTART_COUNT": str(attempt),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(world)
    ]
    texts = [process.communicate(timeout=40)[0] for process in ranks]
    return Ran([process.returncode for process in ranks], texts)


def weights(folder: Path, iteration: int) -> list[float]:
    path = folder / "checkpoints" / f"iter_{iteration:07d}" / "state.json"
    found: list[float] = json.loads(path.read_text())["weights"]
    return found


def test_it_trains_to_the_end_in_the_shapes_of_megatron(tmp_path: Path) -> None:
    ran = train(tmp_path, "--steps", "10")
    assert ran.codes == [0, 0, 0]
    assert ran.steps == list(range(1, 11))
    root = tmp_path / "checkpoints"
    assert "WARNING: could not find the metadata file" in ran.texts[0]
    assert "will not load any checkpoints and will start from random" in ran.texts[0]
    for iteration in (4, 8, 10):
        assert f"saving checkpoint at iteration {iteration:7d} to {root}" in ran.texts[0]
        done = f"successfully saved checkpoint from iteration {iteration:7d} to {root}"
        assert done in ran.texts[0]
    assert (root / "latest_checkpointed_iteration.txt").read_text() == "10"
    assert all("training complete at iteration 10" in text for text in ran.texts)


def test_a_resumed_run_ends_with_the_parameters_of_an_unbroken_one(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    whole.mkdir()
    broken.mkdir()
    train(whole, "--steps", "10")
    train(broken, "--steps", "10", "--fault", "ecc:node=node-02,step=7")
    ran = train(broken, "--steps", "10", attempt=1)
    assert ran.steps == [5, 6, 7, 8, 9, 10]
    loaded = f"successfully loaded checkpoint from {broken}/checkpoints [ t 1/1, p 1/1 ]"
    assert all(f"{loaded} at iteration 4\n" in text for text in ran.texts)
    assert weights(broken, 10) == weights(whole, 10)


def test_an_unfinished_checkpoint_is_passed_over(tmp_path: Path) -> None:
    train(tmp_path, "--steps", "8", world=1)
    (tmp_path / "checkpoints" / "iter_0000008" / "state.json").unlink()
    ran = train(tmp_path, "--steps", "8", world=1, attempt=1)
    assert ran.steps == [5, 6, 7, 8]


def test_training_learns(tmp_path: Path) -> None:
    ran = train(tmp_path, "--steps", "60", "--step-seconds", "0", world=1)
    losses = [float(text) for text in re.findall(r"lm loss: (\S+)", ran.texts[0])]
    assert sum(losses[-10:]) < sum(losses[:10]) / 4


def test_a_bad_memory_breaks_its_rank_and_the_others_lose_their_peer(tmp_path: Path) -> None:
    ran = train(tmp_path, "--steps", "10", "--fault", "ecc:node=node-02,step=6")
    assert ran.codes == [1, 1, 1]
    assert "\n[rank1]: Traceback (most recent call last):\n" in ran.texts[1]
    root = "\n[rank1]: RuntimeError: CUDA error: uncorrectable ECC error encountered\n"
    assert root in ran.texts[1]
    assert "[rank1]: For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n" in ran.texts[1]
    assert CLOSED.search(ran.texts[0])
    assert CLOSED.search(ran.texts[2])
    assert ran.steps == [1, 2, 3, 4, 5]


def test_the_fault_stays_with_its_node_as_long_as_it_is_told_to(tmp_path: Path) -> None:
    fault = ("--steps", "6", "--fault", "ecc:node=node-02,step=2,attempts=2")
    assert train(tmp_path, *fault, world=2).codes == [1, 1]
    assert train(tmp_path, *fault, world=2, attempt=1).codes == [1, 1]
    assert train(tmp_path, *fault, world=2, attempt=2).codes == [0, 0]


@pytest.mark.parametrize(
    ("fault", "codes", "line"),
    [
        (
            "module",
            [1, 1],
            r"\[rank1\]: ModuleNotFoundError: No module named 'fused_layer_norm_cuda'\n",
        ),
        (
            "oom:node=node-02,step=3",
            [1, 1],
            r"\[rank1\]: torch\.OutOfMemoryError: CUDA out of memory\. Tried to allocate",
        ),
        (
            "xid:node=node-02,step=3",
            [1, 1],
            r"\nNVRM: Xid \(PCI:0000:b3:00\): 79, pid=.*\n[^$]*CUDA error: unspecified launch",
        ),
        ("segfault:node=node-02,step=3", [1, -signal.SIGSEGV], r""),
    ],
)
def test_each_fault_breaks_in_its_own_shape(
    tmp_path: Path, fault: str, codes: list[int], line: str
) -> None:
    ran = train(tmp_path, "--steps", "6", "--fault", fault, world=2)
    assert ran.codes == codes
    assert re.search(line, "\n" + ran.texts[1])


def test_a_dead_task_is_not_noticed_until_the_collective_times_out(tmp_path: Path) -> None:
    more = ("--fault", "deadtask:node=node-02,step=3", "--collective-timeout", "0.5")
    ran = train(tmp_path, "--steps", "6", *more)
    assert ran.codes == [-signal.SIGABRT, 7, -signal.SIGABRT]
    assert "Traceback" not in "".join(ran.texts)
    shape = r"\[rank0\]:\[E\S+ \S+ ProcessGroupNCCL\.cpp:\d+\] \[Rank 0\] Watchdog caught"
    assert re.search(shape, ran.texts[0])


def test_a_hung_rank_stays_alive_while_the_others_time_out(tmp_path: Path) -> None:
    more = ("--fault", "hang:node=node-02,step=3", "--collective-timeout", "0.5")
    ran = train(tmp_path, "--steps", "6", *more, "--most-seconds", "2")
    assert ran.codes == [-signal.SIGABRT, 1, -signal.SIGABRT]
    assert ran.steps == [1, 2]


def test_a_launcher_restarts_in_place_and_steps_go_on(tmp_path: Path) -> None:
    more = ("--launcher", "--fault", "inplace:node=node-02,step=6")
    ran = train(tmp_path, "--steps", "8", *more)
    assert ran.codes == [0, 0, 0]
    assert "CUDA error: uncorrectable ECC error encountered" in ran.texts[1]
    assert "Worker group FAILED. 3/3 attempts left; will restart worker group" in ran.texts[1]
    assert ran.steps == [1, 2, 3, 4, 5, 5, 6, 7, 8]


def test_a_launcher_gives_up_after_its_restarts(tmp_path: Path) -> None:
    more = ("--launcher", "--max-restarts", "1", "--fault", "ecc:node=node-01")
    ran = train(tmp_path, "--steps", "8", *more, world=1)
    assert ran.codes == [1]
    assert ran.texts[0].count("CUDA error: uncorrectable ECC error") == 2
    assert "ChildFailedError: \n" in ran.texts[0]
    assert "  host      : node-01\n  rank      : 0 (local_rank: 0)\n" in ran.texts[0]


def test_a_rank_that_waits_alone_ends_with_a_rendezvous_error(tmp_path: Path) -> None:
    (tmp_path / "rendezvous.json").write_text('{"port": 1, "token": "of another run"}')
    environment = {**os.environ, "RELIGHT_RANK": "1", "RELIGHT_WORLD": "2"}
    command = [sys.executable, str(TRAIN), "--folder", str(tmp_path), "--rendezvous-timeout", "0.2"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "[rank1]: torch.distributed.DistStoreError: Timed out" in done.stderr


def test_a_rank_ends_when_its_parent_dies(tmp_path: Path) -> None:
    command = f"{sys.executable} {TRAIN} --folder {tmp_path} --steps 100000 & echo $!; sleep 0.5"
    done = subprocess.run(
        ["/bin/sh", "-c", command], stdout=subprocess.PIPE, text=True, check=True, timeout=20
    )
    pid = int(done.stdout.split()[0])
    until = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("fault", ["flood", "ecc:colour=red", "ecc:step=soon", "ecc:node"])
def test_a_fault_that_is_not_one_is_a_usage_error(tmp_path: Path, fault: str) -> None:
    ran = train(tmp_path, "--fault", fault, world=1)
    assert ran.codes == [2]
    assert "usage:" in ran.texts[0]


@pytest.mark.parametrize("name", ["train.py", "launcher.py"])
def test_the_programs_are_written_for_python_3_9(name: str) -> None:
    source = TRAIN.with_name(name).read_text()
    nodes = list(ast.walk(ast.parse(source, feature_version=(3, 9))))
    roots = {
        name.name.partition(".")[0]
        for node in nodes
        if isinstance(node, ast.Import)
        for name in node.names
    }
    roots |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert roots <= set(sys.stdlib_module_names)
