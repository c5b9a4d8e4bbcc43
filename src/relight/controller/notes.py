"""The note that relight leaves on a job: one tagged part of a field that is not its own.

Slurm's AdminComment survives a requeue and is the only field that names an advice from
within the scheduler, so it is also how a restarted controller knows what it has done.
Sites keep text of their own there: everything outside the tag stays as it was.
"""

from __future__ import annotations

import re

from relight.model.advice import Advice
from relight.model.instants import Instant, to_iso

MOST_NOTE = 900
"""Characters of the tagged part; Slurm itself takes 64 kB, a person's screen does not."""

_TAG = re.compile(r" ?\[relight [^\[\]]*\]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\[\]]")


def write_note(existing: str, advice: Advice, until: Instant | None) -> str:
    """Return ``existing`` with relight's part put in, in place of an older part."""
    rest = _TAG.sub("", existing).rstrip()
    when = f" Until {to_iso(until)[:19]}Z." if until is not None else ""
    sentence = _CONTROL.sub(" ", advice.reason.sentence)[:MOST_NOTE]
    part = f"[relight {_mark(advice)}: {sentence}{when}]"
    return f"{rest} {part}" if rest else part


def is_noted(note: str, advice: Advice) -> bool:
    """Tell whether the note says that this generation of this advice was carried out."""
    return f"[relight {_mark(advice)}:" in note


def _mark(advice: Advice) -> str:
    return f"{advice.id}/{advice.generation}"
