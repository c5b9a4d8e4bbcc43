"""Why a decision was taken on logs alone, said only as far as the logs show it."""

from __future__ import annotations

from relight.model.findings import Finding
from relight.policy.lone import Ruling

_REQUEUED = "requeued-by-itself"
"""The rule of what programs print that have put their job back into the queue."""
_NONE_SEEN = "no checkpoint was seen to go on from"
_WITHOUT_CHECKPOINT = {
    "ran-out-by-and-by": "It ran out after {steps} steps: a restart gets it back, but "
    + _NONE_SEEN,
    "not-done-yet": "Nothing is broken and the work is not done: start it again; " + _NONE_SEEN,
    "slow": "It goes on, but slowly: a restart may find a better place, but " + _NONE_SEEN,
}
"""What is said instead of a reason's own sentence, which speaks of the last checkpoint."""


def requeued(findings: tuple[Finding, ...]) -> bool:
    """Tell whether a line says that the job was put back into the queue."""
    return any(one.rule == _REQUEUED for one in findings)


def ground(ruling: Ruling, *, saw_checkpoint: bool, was_requeued: bool, steps: int) -> str:
    """Return why a ruling was made, without a checkpoint or a requeue that nobody saw."""
    if ruling.reason.code == "requeues-itself":
        if was_requeued:
            return "The log says that it was put back into the queue, so it starts again by itself."
        return (
            "It answered the word to stop as it should: whoever gave it may start it again; "
            "nothing in the log says that it does so by itself."
        )
    words = None if saw_checkpoint else _WITHOUT_CHECKPOINT.get(ruling.reason.code)
    return words.format(steps=f"{steps:,}") + "." if words else ruling.reason.sentence
