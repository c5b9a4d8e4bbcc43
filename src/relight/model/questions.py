"""Questions that the core asks and a later stimulus answers, or a Tick lets expire."""

from __future__ import annotations

from relight.model.evidence import Window, Witness
from relight.model.jobs import JobKey
from relight.model.records import Record
from relight.model.verdicts import Verdict


class CapacityAsked(Record, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Asks how many nodes could serve the job with these left out."""

    job: JobKey
    without: tuple[str, ...]


class CheckpointAsked(Record, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Asks what lies at the job's checkpoint path."""

    job: JobKey
    path: str


class EvidenceAsked(Record, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Asks one witness about one attempt; ``EvidenceSeen`` of the same ``witness`` answers."""

    job: JobKey
    witness: Witness
    window: Window


class AttributionAsked(Record, frozen=True, kw_only=True, tag=True, tag_field="type"):
    """Asks the outside attribution services about one attempt.

    ``ours`` is relight's own verdict, ``is_living`` whether the attempt still runs.
    """

    job: JobKey
    attempt: int
    ours: Verdict | None = None
    window: Window | None = None
    is_living: bool = False


Question = CapacityAsked | CheckpointAsked | EvidenceAsked | AttributionAsked
