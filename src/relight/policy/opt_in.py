"""Who is watched, and under which limits: settings and the job's own comment, read together.

A job's comment is the user's. It can pick a policy and narrow what that policy allows,
never widen it. A comment that cannot be read fully opts the job in *with errors*: it is
listed, the message names the key, and nothing is done for it.
"""

from __future__ import annotations

from relight.model.records import Record


class Choice(Record, frozen=True, kw_only=True):
    """How one job is watched.

    ``max_restarts`` None leaves the policy's own number. ``logs``, ``checkpoint`` and
    ``flight_recorder`` are the user's own claims about paths (law 10). ``errors`` are
    sentences for the user; where there is one, the job is listed and left alone.
    """

    opted_in: bool = False
    policy: str = ""
    max_restarts: int | None = None
    logs: str = ""
    checkpoint: str = ""
    flight_recorder: str = ""
    errors: tuple[str, ...] = ()
