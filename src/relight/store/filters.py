"""What a listing is narrowed by; an empty field narrows nothing."""

from __future__ import annotations

import sqlalchemy as sa

from relight.model.audit import Topic
from relight.model.instants import Instant
from relight.model.jobs import JobKey, JobState
from relight.model.records import Record
from relight.store import tables
from relight.store.keys import clean, clipped, job_columns


class CaseFilters(Record, frozen=True, kw_only=True):
    """Which cases; texts are compared whole, ``open`` None means both."""

    cluster: str = ""
    scheduler_id: str = ""
    user: str = ""
    name: str = ""
    partition: str = ""
    state: JobState | None = None
    open: bool | None = None
    with_incident: bool = False

    def clauses(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions in SQL."""
        table = tables.cases
        wanted = {
            "cluster": clean(self.cluster),
            "scheduler_id": clean(self.scheduler_id),
            "user": clipped(self.user),
            "name": clipped(self.name),
            "partition": clipped(self.partition),
            "state": self.state.value if self.state else "",
        }
        clauses = [table.c[name] == value for name, value in wanted.items() if value]
        if self.open is not None:
            clauses.append(table.c.is_open == self.open)
        if self.with_incident:
            clauses.append(table.c.incidents > 0)
        return clauses


class AuditFilters(Record, frozen=True, kw_only=True):
    """Which audit entries; both instants are included."""

    cluster: str = ""
    job: JobKey | None = None
    attempt: int | None = None
    topic: Topic | None = None
    since: Instant | None = None
    until: Instant | None = None

    def clauses(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions in SQL."""
        table = tables.audit
        clauses: list[sa.ColumnElement[bool]] = []
        if self.cluster:
            clauses.append(table.c.cluster == clean(self.cluster))
        if self.job is not None:
            clauses += [table.c[name] == value for name, value in job_columns(self.job).items()]
        if self.attempt is not None:
            clauses.append(table.c.attempt == self.attempt)
        if self.topic is not None:
            clauses.append(table.c.topic == self.topic.value)
        if self.since is not None:
            clauses.append(table.c.at >= self.since)
        if self.until is not None:
            clauses.append(table.c.at <= self.until)
        return clauses
