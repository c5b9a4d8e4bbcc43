"""Reasons: a stable code and one plain sentence, the same wherever they are shown (law 12)."""

from __future__ import annotations

from relight.model.records import Record


class Reason(Record, frozen=True, kw_only=True):
    """Why something was decided, refused or left alone: a kebab-case code and a sentence."""

    code: str
    sentence: str
