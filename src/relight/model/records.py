"""The base of every record: frozen, compared by value, keyword-only, JSON both ways."""

from __future__ import annotations

import hashlib

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A frozen value. Fields may be added with defaults; none is renamed or removed."""


def digest(*parts: str) -> str:
    """Return 12 hexadecimal digits derived from ``parts``: the same parts, the same id."""
    return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=6).hexdigest()
