"""Whether the logs of a living attempt were listened to: silence counts only where they were."""

from __future__ import annotations

from relight.engine.cases import AttemptCase
from relight.engine.turns import Turn
from relight.model.instants import seconds

HEARD_LATELY = seconds(15)
"""Silence counts only while the files were listened to within this time."""


def was_heard_lately(turn: Turn, attempt: AttemptCase) -> bool:
    """Tell whether the attempt's files are seen and were listened to just now."""
    return (
        attempt.heard_at is not None
        and not attempt.logs_unseen
        and turn.now - attempt.heard_at <= HEARD_LATELY
    )
