"""What stands around the lines of a log: who launched it, and on what it was shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum

from relight.model.records import Record


class Prefix(StrEnum):
    """What launchers and log shippers write in front of each line."""

    NONE = "none"
    SRUN = "srun"
    TORCHRUN = "torchrun"
    RANK = "rank"
    RAY = "ray"
    HOST = "host"
    SHIPPED = "shipped"
    MPIRUN = "mpirun"
    RUNTIME = "runtime"
    DETERMINED = "determined"
    COMPOSE = "compose"
    FOREMAN = "foreman"
    HOST_AND_RANK = "host_and_rank"
    SAGEMAKER = "sagemaker"
    SKYPILOT = "skypilot"
    ACTOR = "actor"
    POD = "pod"
    SYSLOG = "syslog"
    JOURNAL = "journal"
    STREAM = "stream"
    LOGGING = "logging"
    LOGGING_NAMED = "logging_named"
    LOGGING_BASIC = "logging_basic"
    LOGGING_RANKED = "logging_ranked"
    LOGGING_COLUMNS = "logging_columns"
    BRACKETS = "brackets"
    LEVEL = "level"
    LOGURU = "loguru"
    KLOG = "klog"
    RAY_LOGGING = "ray_logging"
    DOCKER_JSON = "docker_json"
    LOGFMT = "logfmt"
    CLOUD_JSON = "cloud_json"


_PREFIXES = {
    Prefix.NONE: "",
    Prefix.SRUN: "  0: ",
    Prefix.TORCHRUN: "[default0]:",
    Prefix.RANK: "[rank0]:",
    Prefix.RAY: "\x1b[36m(TaskRunner pid=54569)\x1b[0m ",
    Prefix.HOST: "node-001: ",
    Prefix.SHIPPED: "2026-01-31T10:00:00.123456789Z ",
    Prefix.MPIRUN: "[1,0]<stdout>:",
    Prefix.RUNTIME: "2026-01-31T10:00:00.123456789Z stderr F ",
    Prefix.DETERMINED: "[2026-01-31T10:00:00.123456Z] 1a2b3c4d || ",
    Prefix.COMPOSE: "trainer-0  | ",
    Prefix.FOREMAN: "10:00:00 trainer.1  | ",
    Prefix.HOST_AND_RANK: "node-001 | [rank0]: ",
    Prefix.SAGEMAKER: "[1,mpirank:0,algo-1]<stdout>:",
    Prefix.SKYPILOT: "(worker1, rank=0, pid=3356, ip=10.164.0.11) ",
    Prefix.ACTOR: "(RayTrainWorker pid=54569, ip=10.0.0.3) ",
    Prefix.POD: "[pod/trainer-worker-0/pytorch] ",
    Prefix.SYSLOG: "Jan 31 10:00:00 node-001 python[4711]: ",
    Prefix.JOURNAL: "2026-01-31T10:00:00+0000 node-001 python[4711]: ",
    Prefix.STREAM: "2026-01-31T10:00:00.123000+00:00 job/default/0a1b2c3d ",
    Prefix.LOGGING: "2026-01-31 10:00:00,123 - INFO - ",
    Prefix.LOGGING_NAMED: "2026-01-31 10:00:00,123 - root - INFO - ",
    Prefix.LOGGING_BASIC: "INFO:root:",
    Prefix.LOGGING_RANKED: "2026-01-31 10:00:00,123 [rank0] ERROR ",
    Prefix.LOGGING_COLUMNS: "2026-01-31 10:00:00,123 INFO     ",
    Prefix.BRACKETS: "[2026-01-31 10:00:00,123] [INFO] [engine.py:12:log] ",
    Prefix.LEVEL: "[INFO] ",
    Prefix.LOGURU: "2026-01-31 10:00:00.123 | INFO     | trainer.loop:run:88 - ",
    Prefix.KLOG: "I0131 10:00:00.123456    4711 launch.py:12] ",
    Prefix.RAY_LOGGING: "2026-01-31 10:00:00,123\tINFO launch.py:88 -- ",
}
_ENVELOPES = {
    Prefix.DOCKER_JSON: '{{"log":{},"stream":"stderr","time":"2026-01-31T10:00:00.123456789Z"}}',
    Prefix.LOGFMT: 'time="2026-01-31T10:00:00Z" level=info msg={}',
    Prefix.CLOUD_JSON: (
        '{{"insertId":"a1","resource":{{"labels":{{"pod_name":"trainer-0"}}}},"textPayload":{},'
        '"timestamp":"2026-01-31T10:00:00.123456Z"}}'
    ),
}
"""What wraps a line up instead, with a place for it as JSON writes a string."""

NOISE = (
    "NCCL version 2.21.5+cuda12.4",
    "node-001:4211:4711 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so)",
    "node-001:4211:4711 [0] NCCL INFO Connected all rings",
    (
        "/usr/lib/python3/dist-packages/torch/amp.py:12: FutureWarning: `autocast(args...)` is"
        " deprecated. Please use `autocast('cuda', args...)` instead."
    ),
    "UserWarning: The given buffer is not writable, and this backend does not support it.",
    "[W reducer.cpp:1251] Warning: find_unused_parameters=True was specified in DDP constructor",
    "Loading checkpoint shards: 100%|##########| 3/3 [00:05<00:00,  1.70s/it]",
    "Map (num_proc=8): 100%|##########| 5000/5000 [00:01<00:00, 4021.11 examples/s]",
    "number of errors so far: 0",
    "max_steps: 100000, save_steps: 500, eval_steps: 250",
)
"""Lines of healthy logs that look like failures or like progress and are neither."""


class Dress(Record, frozen=True, kw_only=True):
    """What is put around a log's lines; ``noise`` is a line of ``NOISE`` after so many."""

    prefix: Prefix = Prefix.NONE
    colours: bool = False
    crlf: bool = False
    noise: int = 0


def dressed(lines: Iterable[str], dress: Dress) -> Iterator[str]:
    """Yield the lines of a log as they stand in its file, line ends included."""
    end = "\r\n" if dress.crlf else "\n"
    for number, line in enumerate(lines):
        shown = f"\x1b[32m{line}\x1b[0m" if dress.colours else line
        yield _behind(dress.prefix, shown) + end
        if dress.noise and number % dress.noise == dress.noise - 1:
            yield _behind(dress.prefix, NOISE[number // dress.noise % len(NOISE)]) + end


def _behind(prefix: Prefix, line: str) -> str:
    envelope = _ENVELOPES.get(prefix)
    return _PREFIXES[prefix] + line if envelope is None else envelope.format(json.dumps(line))
