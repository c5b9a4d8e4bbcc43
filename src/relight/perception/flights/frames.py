"""Where in the user's code a collective was called, and what was going on there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_LIBRARIES = ("/torch/", "site-packages/", "dist-packages/", "/lib/python", "<string>", "<frozen")
_PHASES = (
    ("writing or reading a checkpoint", ("checkpoint", "save_state", "load_state", "state_dict")),
    ("loading data", ("dataloader", "data_loader", "dataset", "next_batch", "data_iter")),
    ("evaluating", ("evaluat", "validat", "eval_step")),
    ("the backward pass", ("backward",)),
    ("the optimizer step", ("optimizer", "clip_grad")),
    ("the forward pass", ("forward",)),
)
"""What functions' names tell, the rarest first: a checkpoint is written by way of many others."""
_MOST_FRAMES = 64
_LONGEST = 160


def told_by(stack: Sequence[object]) -> tuple[str, str]:
    """Return ``train.py:88 in step`` and what the names on a stack say was going on.

    The line is the innermost that is no library's, else the innermost; empty where nothing is told.
    Frames are listed from the innermost outwards.
    """
    frames = list(_frames(stack))
    if not frames:
        return "", ""
    own = (one for one in frames if not any(part in one[0] for part in _LIBRARIES))
    file, line, function = next(own, frames[0])
    names = " ".join(f"{file} {function}" for file, _, function in frames).lower()
    phase = next((phase for phase, words in _PHASES if any(word in names for word in words)), "")
    return f"{file.rpartition('/')[2]}:{line} in {function}"[:_LONGEST], phase


def _frames(stack: Sequence[object]) -> Iterator[tuple[str, int, str]]:
    for one in stack[:_MOST_FRAMES]:
        if not isinstance(one, dict):
            continue
        file, line, function = one.get("filename"), one.get("line"), one.get("name")
        if isinstance(file, str) and isinstance(function, str):
            number = line if isinstance(line, int) else 0
            yield file[-_LONGEST:], min(abs(number), 10**9), function[:_LONGEST]
