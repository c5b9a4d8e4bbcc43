"""Leases: which process may decide for a cluster, or act at it, and until when."""

from __future__ import annotations

from relight.model.instants import Instant
from relight.model.records import Record


class Lease(Record, frozen=True, kw_only=True):
    """The right to decide for one cluster.

    ``number`` is the fencing number: it rises with each new holder, and what carries an
    older one is refused.
    """

    cluster: str
    holder: str
    number: int
    expires_at: Instant
