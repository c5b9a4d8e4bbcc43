"""Journal, state, advice and audit in one database, committed together.

This room decides nothing and knows no scheduler: it keeps what it is given, whole or not at
all, and answers questions about it.
"""

from __future__ import annotations

from relight.store.changes import Change, JournalRecord, SavedPerception, Tail
from relight.store.connections import as_url
from relight.store.errors import StoreBroken, StoreBusy, StoreError, StoreRefused
from relight.store.filters import AuditFilters, CaseFilters
from relight.store.pages import Page
from relight.store.schemas import upgrade
from relight.store.stores import Store

__all__ = [
    "AuditFilters",
    "CaseFilters",
    "Change",
    "JournalRecord",
    "Page",
    "SavedPerception",
    "Store",
    "StoreBroken",
    "StoreBusy",
    "StoreError",
    "StoreRefused",
    "Tail",
    "as_url",
    "upgrade",
]
