"""What keeps a TOML table from being a rule, said to whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum, EnumType
from typing import get_args

import msgspec

from relight.model.records import Record

_MISMATCH = re.compile(r"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`")
_KINDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def problems_with(table: object, kind: type[Record], called: str) -> list[str]:
    """Return everything that keeps ``table`` from being a record of ``kind``, in a sentence each.

    ``called`` is what such a record is called: ``a rule``.
    """
    if not isinstance(table, dict):
        return ["is no table of keys and values"]
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    problems = [
        f"lacks {name}" for name, field in fields.items() if field.required and name not in table
    ]
    for key, value in table.items():
        if key not in fields:
            near = get_close_matches(str(key), fields, n=1)
            hint = f"did you mean {near[0]}?" if near else f"a rule has {', '.join(fields)}"
            problems.append(f"{key} is no field of {called}; {hint}")
            continue
        wanted = fields[key].type
        try:
            msgspec.convert(value, wanted)
        except msgspec.ValidationError as error:
            problems.append(f"{key}: {_in_words(str(error))}{_allowed(wanted)}")
    return problems


def _in_words(error: str) -> str:
    """Return what a validation error says in the words of who writes TOML."""
    return _MISMATCH.sub(
        lambda found: f"is {_kinds(found['got'])}; {_kinds(found['wanted'])} is expected", error
    )


def _kinds(text: str) -> str:
    return " or ".join(_KINDS.get(one, one) for one in text.split(" | ") if one != "null")


def _allowed(kind: object) -> str:
    """Return in words what an enumeration allows, empty for another type."""
    for choice in (kind, *get_args(kind)):
        if isinstance(choice, EnumType):
            members: Iterable[Enum] = choice
            return f"; allowed are {', '.join(str(one.value) for one in members)}"
    return ""
