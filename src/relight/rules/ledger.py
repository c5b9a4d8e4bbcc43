"""Healthy logs in which a rule is known to be heard, each entry dated and with its reason.

A rule that is heard in a healthy log raises a false alarm. Where the line cannot be told from
a true one, the entry here says so until somebody finds how; an entry that no longer holds is
a problem too, so that the ledger only shrinks.
"""

from __future__ import annotations

import datetime as dt
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from relight.model.records import Record


class Known(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule that is heard in one healthy log, since when, and why that is borne."""

    log: str
    rule: str
    since: dt.date
    why: str


class LedgerError(ValueError):
    """A ledger that cannot be read; the message says what is wrong with it."""


def read_ledger(file: Path) -> tuple[Known, ...]:
    """Return the entries of a ledger; a file that is not there has none.

    Raises:
        LedgerError: it is no TOML, or an entry lacks a field.

    """
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        return msgspec.convert(tables.get("heard", []), tuple[Known, ...])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise LedgerError(f"{file}: {error}") from error


def judge(
    heard: Iterable[tuple[str, str]], ledger: Sequence[Known], logs: Iterable[str]
) -> list[str]:
    """Return what is wrong when ``heard`` are the pairs of log and rule found in ``logs``."""
    found = set(heard)
    read = set(logs)
    known = {(one.log, one.rule) for one in ledger}
    problems = [
        f"{log} is healthy, but {rule} is heard in it; narrow the rule, or enter it in the ledger"
        for log, rule in sorted(found - known)
    ]
    problems += [
        f"the ledger says that {log} holds {rule}, and it does not; remove the entry"
        for log, rule in sorted(known - found)
        if log in read
    ]
    return problems
