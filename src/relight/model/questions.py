"""Questions that the core asks and a later stimulus answers, or a Tick lets expire."""

from __future__ import annotations

from relight.model.jobs import JobKey
from relight.model.records import Record


class CapacityAsked(Record, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Asks how many nodes could serve the job with these left out."""

    job: JobKey
    without: tuple[str, ...]


class CheckpointAsked(Record, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Asks what lies at the job's checkpoint path."""

    job: JobKey
    path: str


class AttributionAsked(Record, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Asks an outside attribution service about one attempt."""

    job: JobKey
    attempt: int


Question = CapacityAsked | CheckpointAsked | AttributionAsked
