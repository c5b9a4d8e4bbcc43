"""The record of one job, read as it grows."""

from __future__ import annotations

from relight.model.audit import AuditEntry
from relight.model.jobs import JobKey
from relight.store.filters import AuditFilters
from relight.store.stores import Store

_PAGE = 200


class Entries:
    """Gives the audit entries of one job in their order, each once."""

    def __init__(self, store: Store, key: JobKey) -> None:
        self._store = store
        self._filters = AuditFilters(job=key)
        self._cursor = ""
        self._given = 0

    def new(self) -> list[AuditEntry]:
        """Return the entries that were written since the last call."""
        fresh: list[AuditEntry] = []
        while True:
            page = self._store.audit(self._filters, _PAGE, self._cursor)
            fresh += page.items[self._given :]
            if not page.next:
                self._given = len(page.items)
                return fresh
            self._cursor, self._given = page.next, 0
