"""What can go wrong with the store, by what the caller can do about it."""

from __future__ import annotations


class StoreError(Exception):
    """The base of all errors of the store."""


class StoreBusy(StoreError):  # noqa: N818 - named by what it says, like its siblings
    """Somebody else holds the database: nothing was written, try again."""


class StoreRefused(StoreError):  # noqa: N818 - named by what it says, like its siblings
    """What was asked cannot be done: correct the call, the file or the settings."""


class StoreBroken(StoreError):  # noqa: N818 - named by what it says, like its siblings
    """The database is damaged, full or gone: call a person."""
