"""Train a small model on several ranks for real, and break on command.

One file of standard library, so that any ``python3`` from 3.9 on can run it. Each rank computes
the gradient of a linear regression on its own share of samples; rank 0 sums them over TCP, so a
rank that dies breaks the others with a real closed connection. The last rank prints progress in
Megatron-LM's shape, rank 0 writes checkpoints, every start resumes from the newest complete one.
The same steps give the same parameters to the last bit, resumed or not.

Rank, world and node come from ``RELIGHT_RANK`` and its like, else from Slurm's ``SLURM_PROCID``.

    train.py --steps 60 --folder RUN --fault ecc:node=node-02,step=12

A run always ends: every wait has a limit, and a rank whose parent has died goes too.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import math
import os
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

KINDS = ("ecc", "module", "oom", "hang", "segfault", "inplace", "deadtask", "xid")
TRACKER = "latest_checkpointed_iteration.txt"
FEATURES, SAMPLES = 8, 4
RATE, MOMENT = 0.05, 0.005
LONGEST_MESSAGE = 1 << 16
ADVICE = """
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace \
below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
ECC = "CUDA error: uncorrectable ECC error encountered" + ADVICE
LAUNCH = "CUDA error: unspecified launch failure" + ADVICE
MEMORY = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has 1.19 GiB of 79.11 GiB free."
XID = "NVRM: Xid (PCI:0000:b3:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
CLOSED = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer {}"
OutOfMemoryError = type("OutOfMemoryError", (RuntimeError,), {"__module__": "torch"})
"""A traceback names it as PyTorch's own; so is the next."""
DistStoreError = type("DistStoreError", (RuntimeError,), {"__module__": "torch.distributed"})


class Place(NamedTuple):
    """Where this process stands: its rank among ``world``, its node, which try it is."""

    rank: int
    world: int
    node: str
    job: str
    attempt: int
    inplace: int


class Fault(NamedTuple):
    """What breaks, where (None: everywhere), from which step on, in how many attempts."""

    kind: str
    node: str | None
    rank: int | None
    step: int
    attempts: float

    def strikes(self, place: Place, step: int) -> bool:
        """Return whether it breaks this rank when it is about to compute ``step``."""
        over = self.kind == "inplace" and place.inplace > 0
        here = self.node in (None, place.node) and self.rank in (None, place.rank)
        return not over and here and step >= self.step and place.attempt < self.attempts


class Collective:
    """Sums values over all ranks through rank 0, over TCP."""

    def __init__(self, place: Place, options: argparse.Namespace) -> None:
        self.place = place
        self.options = options
        # Between GPUs a dead peer goes unnoticed until the timeout: so it does with this fault.
        self.notices = all(fault.kind != "deadtask" for fault in options.fault)
        self.meeting = options.folder / "rendezvous.json"
        self.token = f"{place.job}/{place.attempt}/{place.world}"
        self.peers: list[socket.socket] = []
        self.names: dict[socket.socket, str] = {}

    def meet(self, iteration: int) -> int:
        """Connect all ranks; return rank 0's iteration, from which all of them go on."""
        if self.place.world == 1:
            return iteration
        try:
            start = self._join() if self.place.rank else self._gather(iteration)
            self.names = {sock: "[{}]:{}".format(*sock.getpeername()) for sock in self.peers}
        except OSError as error:
            raise DistStoreError(f"Timed out waiting for clients of rank 0: {error}") from None
        for sock in self.peers:
            sock.settimeout(self.options.collective_timeout)
        return start

    def _gather(self, iteration: int) -> int:
        joined: dict[int, socket.socket] = {}
        with socket.create_server((self.options.host, 0), backlog=self.place.world) as server:
            server.settimeout(self.options.rendezvous_timeout)
            port = server.getsockname()[1]
            write_durably(self.meeting, json.dumps({"port": port, "token": self.token}))
            while len(joined) < self.place.world - 1:
                sock, _ = server.accept()
                try:
                    sock.settimeout(2)
                    token, rank = receive(sock)
                    sock.sendall(encode([self.token, iteration]))
                except (OSError, ValueError, TypeError):  # not one of ours, or already dead
                    sock.close()
                else:
                    if token == self.token:
                        joined[rank] = sock
        self.peers = [joined[rank] for rank in sorted(joined)]
        return iteration

    def _join(self) -> int:
        until = time.monotonic() + self.options.rendezvous_timeout
        while time.monotonic() < until:
            try:
                meeting = json.loads(self.meeting.read_text())
                sock = socket.create_connection((self.options.host, meeting["port"]), timeout=2)
                sock.sendall(encode([self.token, self.place.rank]))
                token, iteration = receive(sock)
                if meeting["token"] == token == self.token:
                    self.peers = [sock]
                    return int(iteration)
            except (OSError, ValueError, KeyError, TypeError):
                pass  # rank 0 is not there yet, or the file is of an attempt that has ended
            time.sleep(0.02)
        raise TimeoutError("not found")

    def sum(self, values: list[float]) -> list[float]:
        """Return the sums over all ranks, added in rank order so that they are reproducible."""
        if self.place.rank > 0:
            return self._talk(self.peers[0], values, answered=True)
        total = values
        for sock in self.peers:
            theirs = self._talk(sock, [], answered=True)
            total = [mine + theirs[index] for index, mine in enumerate(total)]
        for sock in self.peers:
            self._talk(sock, total, answered=False)
        return total

    def _talk(self, sock: socket.socket, values: list[float], *, answered: bool) -> list[float]:
        begun = time.monotonic()
        limit, rank = self.options.collective_timeout, self.place.rank
        try:
            if values:
                sock.sendall(encode(values))
            return [float(value) for value in receive(sock)] if answered else []
        except OSError:
            left = limit - (time.monotonic() - begun)
        if left > 0 and self.notices:
            raise RuntimeError(CLOSED.format(self.names[sock]))
        time.sleep(max(left, 0))
        say(
            f"[rank{rank}]:[E{now():%m%d %H:%M:%S.%f}000 ProcessGroupNCCL.cpp:632] [Rank {rank}] "
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, "
            f"NumelIn={FEATURES + 2}, NumelOut={FEATURES + 2}, Timeout(ms)={limit * 1000:.0f}) "
            f"ran for {limit * 1000 + 12:.0f} milliseconds before timing out."
        )
        raise die_of(signal.SIGABRT)


def encode(message: list[Any]) -> bytes:
    """Return a message as one line of JSON, which keeps every bit of a float."""
    return json.dumps(message).encode() + b"\n"


def receive(sock: socket.socket) -> list[Any]:
    """Return the next message, or raise OSError; no side sends two without hearing one."""
    data = b""
    while not data.endswith(b"\n"):
        part = sock.recv(LONGEST_MESSAGE)
        if not part or len(data) > LONGEST_MESSAGE:
            raise ConnectionError
        data += part
    return list(json.loads(data))


def now() -> datetime:
    """Return the local time, which is what training frameworks print."""
    return datetime.now().astimezone()  # noqa: TID251 - the log's own clock is this program's part


def say(text: str) -> None:
    """Write one line at once, in one piece."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def die_of(number: signal.Signals) -> SystemExit:
    """End this process by a signal, without leaving a core file; return only if it is blocked."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), number)
    return SystemExit(128 + number)


def guard(most_seconds: float) -> None:
    """End this process when its parent has died or its time is up."""
    parent, end = os.getppid(), time.monotonic() + most_seconds
    while os.getppid() == parent and time.monotonic() < end:
        time.sleep(0.2)  # PyTorch takes longer; srun loses the last words of what is gone at once
    os._exit(1)


def write_durably(path: Path, text: str) -> None:
    """Replace a file so that a reader sees all of the old text or all of the new."""
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def save(root: Path, iteration: int, weights: list[float], seconds: float = 0.0) -> None:
    """Write a checkpoint, which takes so long; it counts once ``state.json`` is in its folder."""
    say(f"saving checkpoint at iteration {iteration:7d} to {root} in torch_dist format")
    time.sleep(seconds)
    (folder := root / f"iter_{iteration:07d}").mkdir(parents=True, exist_ok=True)
    write_durably(folder / "state.json", json.dumps({"weights": weights}))
    write_durably(root / TRACKER, str(iteration))
    say(f"  successfully saved checkpoint from iteration {iteration:7d} to {root} [ t 1/1, p 1/1 ]")


def newest(root: Path) -> int:
    """Return the iteration of the newest complete checkpoint, 0 when there is none."""
    complete = root.glob("iter_*/state.json") if (root / TRACKER).is_file() else []
    return max((int(path.parent.name[len("iter_") :]) for path in complete), default=0)


def load(root: Path, iteration: int) -> list[float]:
    """Return the parameters of a checkpoint and say so; iteration 0 starts from nothing."""
    if iteration == 0:
        say(f"WARNING: could not find the metadata file {root / TRACKER}")
        say("    will not load any checkpoints and will start from random")
        return [0.0] * (FEATURES + 1)
    state = json.loads((root / f"iter_{iteration:07d}" / "state.json").read_text())
    say(f"  successfully loaded checkpoint from {root} [ t 1/1, p 1/1 ] at iteration {iteration}")
    return [float(weight) for weight in state["weights"]]


def compute(seconds: float) -> None:
    """Pass the time that a step's mathematics would take; it is lost while the rank is stopped."""
    for _ in range(round(seconds / MOMENT)):
        time.sleep(MOMENT)


def gradient(weights: list[float], rank: int, step: int) -> list[float]:
    """Return the gradient of this rank's share of one step's samples, and their loss."""
    total = [0.0] * (FEATURES + 2)
    for sample in range(SAMPLES):
        seed = (step * 131 + rank * 17 + sample) * (FEATURES + 1)
        inputs = [math.sin(seed * 0.7 + index) for index in range(FEATURES)] + [1.0]
        target = sum(value * (index + 1) / FEATURES for index, value in enumerate(inputs))
        guess = sum(value * weights[index] for index, value in enumerate(inputs))
        for index, value in enumerate(inputs):
            total[index] += 2 * (guess - target) * value
        total[-1] += (guess - target) ** 2
    return total


def progress(place: Place, step: int, steps: int, seconds: float, figures: list[float]) -> None:
    """Print one step in Megatron-LM's shape; ``figures``: loss, gradient norm, weight norm."""
    loss, slope, size = figures
    batch = SAMPLES * place.world
    say(
        f" [{now():%Y-%m-%d %H:%M:%S.%f}] iteration {step:8d}/{steps:8d} | consumed samples: "
        f"{step * batch:12d} | elapsed time per iteration (ms): {seconds * 1000:.1f} | "
        f"throughput per GPU (TFLOP/s/GPU): {1e-6 * batch / max(seconds, 1e-6):.1f} | "
        f"learning rate: {RATE:.6E} | global batch size: {batch:5d} | lm loss: {loss:.6E} | "
        f"loss scale: 1.0 | grad norm: {slope:.3f} | num zeros: 0 | params norm: {size:.3f} | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def break_down(kind: str) -> NoReturn:
    """Make a fault happen: raise it, die of it, or never come back."""
    if kind == "module":
        importlib.import_module("fused_layer_norm_cuda")
    if kind == "oom":
        raise OutOfMemoryError(MEMORY)
    if kind == "hang":
        threading.Event().wait()  # the guard ends it
    if kind == "segfault":
        raise die_of(signal.SIGSEGV)
    if kind == "deadtask":
        raise SystemExit(7)
    if kind == "xid":
        say(XID)
        raise RuntimeError(LAUNCH)
    raise RuntimeError(ECC)


def train(place: Place, options: argparse.Namespace) -> None:
    """Train to the last step, or until something breaks."""
    threading.Thread(target=guard, args=(options.most_seconds,), daemon=True).start()
    if any(one.kind == "module" and one.strikes(place, sys.maxsize) for one in options.fault):
        break_down("module")
    root = options.folder / "checkpoints"
    root.mkdir(parents=True, exist_ok=True)
    collective = Collective(place, options)
    start = collective.meet(newest(root))
    weights = load(root, start)
    for step in range(start + 1, options.steps + 1):
        begun = time.monotonic()
        for fault in (one for one in options.fault if one.strikes(place, step)):
            break_down(fault.kind)
        compute(options.step_seconds)
        total = collective.sum(gradient(weights, place.rank, step))
        share = [value / (SAMPLES * place.world) for value in total]
        slope, loss = share[:-1], share[-1]
        weights = [weight - RATE * slope[index] for index, weight in enumerate(weights)]
        if place.rank == place.world - 1:
            figures = [loss, math.hypot(*slope), math.hypot(*weights)]
            progress(place, step, options.steps, time.monotonic() - begun, figures)
        if place.rank == 0 and (step % options.checkpoint_every == 0 or step == options.steps):
            save(root, step, weights, options.checkpoint_seconds)
    say(f"training complete at iteration {max(start, options.steps)}")


def read_place(environment: dict[str, str]) -> Place:
    """Return where this process stands, from its environment."""
    get = environment.get
    return Place(
        rank=int(get("RELIGHT_RANK") or get("SLURM_PROCID") or 0),
        world=int(get("RELIGHT_WORLD") or get("SLURM_NTASKS") or 1),
        node=get("RELIGHT_NODE") or get("SLURMD_NODENAME") or socket.gethostname(),
        job=get("RELIGHT_JOB_ID") or get("SLURM_JOB_ID") or "0",
        attempt=int(get("RELIGHT_RESTART_COUNT") or get("SLURM_RESTART_COUNT") or 0),
        inplace=int(get("TORCHELASTIC_RESTART_COUNT") or 0),
    )


def parse_fault(text: str) -> Fault:
    """Return the fault that ``KIND:node=NODE,rank=N,step=N,attempts=N`` names."""
    kind, _, rest = text.partition(":")
    pairs = dict(pair.split("=", 1) for pair in rest.split(",") if pair)
    if kind not in KINDS or not pairs.keys() <= {"node", "rank", "step", "attempts"}:
        raise ValueError(text)
    rank, attempts = pairs.get("rank"), float(pairs.get("attempts", "inf"))
    whom = None if rank is None else int(rank)
    return Fault(kind, pairs.get("node"), whom, int(pairs.get("step", "0")), attempts)


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    """Return the options; ends the process with a usage message when they are wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="the run's own folder")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--step-seconds", type=float, default=0.05)
    parser.add_argument("--checkpoint-every", type=int, default=10)
    parser.add_argument("--checkpoint-seconds", type=float, default=0.0)
    help_fault = f"KIND:node=NODE,rank=N,step=N,attempts=N; KIND is one of {', '.join(KINDS)}"
    parser.add_argument("--fault", type=parse_fault, action="append", default=[], help=help_fault)
    parser.add_argument("--host", default="127.0.0.1", help="where rank 0 listens")
    parser.add_argument("--collective-timeout", type=float, default=600, help="seconds")
    parser.add_argument("--rendezvous-timeout", type=float, default=60, help="seconds")
    parser.add_argument("--most-seconds", type=float, default=3600, help="the run ends by then")
    parser.add_argument("--launcher", action="store_true", help="restart this rank in place")
    parser.add_argument("--max-restarts", type=int, default=3, help="for --launcher")
    return parser.parse_args(arguments)


def report(rank: int, kind: type[BaseException], error: BaseException, _: object) -> None:
    """Write a traceback with the rank before each line, as PyTorch does."""
    text = "".join(traceback.format_exception(kind, error, error.__traceback__)).splitlines()
    sys.stderr.write("".join(f"[rank{rank}]: {line}\n" for line in text))
    time.sleep(0.2)  # PyTorch takes longer; srun loses the last words of what is gone at once


def main(arguments: list[str]) -> None:
    """Train, or hand over to the launcher that trains in a child."""
    options = parse_arguments(arguments)
    place = read_place(dict(os.environ))
    if options.launcher:
        launcher = [sys.executable, str(Path(__file__).with_name("launcher.py"))]
        worker = [one for one in arguments if one != "--launcher"]
        command = [*launcher, str(options.max_restarts), __file__, *worker]
        os.execv(sys.executable, command)  # noqa: S606 - the file beside this one
    sys.excepthook = functools.partial(report, place.rank)
    train(place, options)


if __name__ == "__main__":
    main(sys.argv[1:])
