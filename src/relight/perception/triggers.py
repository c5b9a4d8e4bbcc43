"""What a block is searched for so that no line is missed on which an expression may match.

A literal is found at little cost, and thousands of them are compiled in a tenth of a second,
where the expressions take several. So each expression begins as the literals of which every
match holds one (``rules.needles``). But a literal such as ``loss`` stands on every line of some
logs. An expression that is asked in vain too often is searched for itself from then on, less
what may be missing at its ends (``rules.relaxing``). Which ones these are differs from log to
log, so it is learnt from the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from relight.model.records import Record
from relight.rules.needles import FEWEST_CHARACTERS, needles, shortest
from relight.rules.relaxing import relaxed

PATIENCE = 20_000
"""Lines asked in vain before the triggers are made anew: about what making them costs."""
_SHARE = 64
"""Who has caused less than this part of what was asked in vain is left as it is."""


class Trigger(Record, frozen=True, kw_only=True):
    """Something to search for, and the numbers of the expressions to ask where it is found.

    Any of ``literals``, or where there are none the ``expression``.
    """

    wakes: tuple[int, ...]
    literals: tuple[bytes, ...] = ()
    is_caseless: bool = False
    expression: bytes = b""


def triggers_of(expressions: Sequence[str]) -> tuple[Trigger, ...]:
    """Return what finds every line on which any of ``expressions`` may match."""
    wakes: dict[tuple[bytes, bool], list[int]] = {}
    found: list[Trigger] = []
    for number, text in enumerate(expressions):
        literals = needles(text.encode().decode("latin-1"))
        is_caseless = "(?i" in text
        if shortest(literals) < FEWEST_CHARACTERS:
            found.append(_itself(number, text))
            continue
        for literal in literals:
            wakes.setdefault((literal.encode("latin-1"), is_caseless), []).append(number)
    alike: dict[tuple[tuple[int, ...], bool], list[bytes]] = {}
    for (needle, is_caseless), numbers in wakes.items():
        alike.setdefault((tuple(numbers), is_caseless), []).append(needle)
    found += [
        Trigger(wakes=numbers, literals=tuple(literals), is_caseless=is_caseless)
        for (numbers, is_caseless), literals in alike.items()
    ]
    return tuple(found)


def sharpened(
    triggers: Iterable[Trigger], expressions: Sequence[str], in_vain: Counter[int]
) -> tuple[Trigger, ...] | None:
    """Return triggers that find the expressions most often asked in vain by themselves.

    ``in_vain`` counts by the expression's number. None when nobody stands out.
    """
    least = max(in_vain.total() // _SHARE, 1)
    known = {number for one in triggers if one.expression for number in one.wakes}
    chosen = {number for number, count in in_vain.items() if count >= least} - known
    if not chosen:
        return None
    kept = [
        Trigger(wakes=wakes, literals=one.literals, is_caseless=one.is_caseless)
        if one.literals
        else one
        for one in triggers
        if (wakes := tuple(number for number in one.wakes if number not in chosen))
    ]
    return (*kept, *(_itself(number, expressions[number]) for number in sorted(chosen)))


def _itself(number: int, text: str) -> Trigger:
    return Trigger(wakes=(number,), expression=relaxed(text).encode())
