"""How names become key columns: bounded, and text that any database can hold."""

from __future__ import annotations

from relight.model.jobs import AttemptKey, JobKey
from relight.store import tables
from relight.store.errors import StoreRefused

_HIGHEST = 2**31 - 1
"""The largest number that an INTEGER column of MySQL holds."""


def job_columns(job: JobKey) -> dict[str, str | int]:
    """Return the values of the key columns that name ``job``.

    Raises:
        StoreRefused: a part of the key is too long or too large.

    """
    return {
        "cluster": key_text(job.cluster, tables.CLUSTER_LENGTH),
        "scheduler_id": key_text(job.scheduler_id, tables.ID_LENGTH),
        "reuse": _bounded(job.reuse),
    }


def attempt_text(attempt: AttemptKey) -> str:
    """Return the text that names ``attempt`` in a key column.

    Raises:
        StoreRefused: a part of the key is too long or too large.

    """
    job_columns(attempt.job)
    _bounded(attempt.attempt)
    return str(attempt)


def key_text(text: str, length: int) -> str:
    """Return ``text`` where it can be a key of ``length`` characters.

    Raises:
        StoreRefused: it is longer, or not UTF-8.

    """
    if len(text) > length or clean(text) != text:
        raise StoreRefused(f"{text[:80]!a} cannot be a key: at most {length} characters of UTF-8")
    return text


def clipped(text: str) -> str:
    """Return ``text`` as it stands in a column that is searched: its beginning, as UTF-8."""
    return clean(text)[: tables.NAME_LENGTH]


def clean(text: str) -> str:
    """Return ``text`` with a question mark for what is not UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _bounded(number: int) -> int:
    if not 0 <= number <= _HIGHEST:
        raise StoreRefused(f"{number} cannot be part of a key: at most {_HIGHEST}")
    return number
