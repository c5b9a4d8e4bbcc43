"""Audit entries: the append-only record of every signal, decision, refusal and order."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from relight.model.instants import Instant
from relight.model.jobs import JobKey
from relight.model.reasons import Reason
from relight.model.records import Record


class Topic(StrEnum):
    """What an audit entry is about."""

    JOB = "job"
    ATTEMPT = "attempt"
    FINDING = "finding"
    INCIDENT = "incident"
    VERDICT = "verdict"
    ADVICE = "advice"
    ORDER = "order"
    RECONCILIATION = "reconciliation"
    PERSON = "person"
    RECOVERY = "recovery"


class AuditEntry(Record, frozen=True, kw_only=True):
    """One line of the record: when, about what, the reason, and the details as text."""

    at: Instant
    job: JobKey
    attempt: int
    topic: Topic
    reason: Reason
    details: dict[str, str] = msgspec.field(default_factory=dict)
