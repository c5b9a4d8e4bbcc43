"""The shapes of lines that tell how far a run has come, as tables of data.

Facts from the sources and logs of the frameworks named. ``SHAPES`` are told rarely: every one
of their lines is read. ``COUNTERS`` may stand on every line of a log.
"""

from __future__ import annotations

from relight.perception.shapes.bars import BARS, GUESSES
from relight.perception.shapes.benchmarks import DLLOGGER, MLPERF
from relight.perception.shapes.entries import Shape
from relight.perception.shapes.events import CHECKPOINTS, LIVES, LOSSES, PAUSES
from relight.perception.shapes.language import LOOPS, MEGATRON
from relight.perception.shapes.tensorflow import MXNET, TENSORFLOW
from relight.perception.shapes.text import TEXT
from relight.perception.shapes.vision import PADDLE, VISION

SHAPES: tuple[Shape, ...] = (*CHECKPOINTS, *PAUSES, *LOSSES, *LIVES)

COUNTERS: tuple[Shape, ...] = (
    *MEGATRON,
    *LOOPS,
    *TEXT,
    *VISION,
    *PADDLE,
    *MLPERF,
    *DLLOGGER,
    *TENSORFLOW,
    *MXNET,
    *BARS,
    *GUESSES,
)
