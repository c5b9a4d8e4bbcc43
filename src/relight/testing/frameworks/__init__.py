"""Healthy training logs as the frameworks write them, and the truth about each.

``generate`` is deterministic: the same arguments, the same bytes. The wordings are the
frameworks' own; everything else in a log is made up.
"""

from __future__ import annotations

from relight.testing.frameworks.dressing import Dress, Prefix
from relight.testing.frameworks.entries import Framework
from relight.testing.frameworks.others import OTHERS
from relight.testing.frameworks.trainers import TRAINERS
from relight.testing.frameworks.vision import VISION
from relight.testing.frameworks.writing import Generated, Truth, write

FRAMEWORKS: dict[str, Framework] = {one.name: one for one in (*TRAINERS, *VISION, *OTHERS)}

__all__ = ["FRAMEWORKS", "Dress", "Framework", "Generated", "Prefix", "Truth", "generate"]


def generate(
    name: str,
    *,
    seed: int = 0,
    steps: int = 200,
    step_seconds: float = 1.25,
    dress: Dress | None = None,
) -> Generated:
    """Return the log of a healthy run of the framework ``name`` and the truth about it.

    ``steps`` are completed, each in about ``step_seconds``; ``dress`` is what stands around
    the lines: prefixes, colours, line ends, noise.

    Raises:
        KeyError: there is no such framework; ``FRAMEWORKS`` has them all.
        ValueError: ``steps`` are so few that the framework would report none of them.

    """
    return write(
        FRAMEWORKS[name], seed=seed, steps=steps, seconds=step_seconds, dress=dress or Dress()
    )
