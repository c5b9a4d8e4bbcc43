"""The diagnosis for machines: every key always there, null where nothing is known."""

from __future__ import annotations

import math
from enum import Enum

import msgspec

from relight.model.instants import Instant, to_iso
from relight.model.reports import Report
from relight.sources.archives.diagnosing import Diagnosed, Diagnoses

_INSTANTS = frozenset({"at", "first_step_at", "last_step_at"})
_NULL_WHEN_EMPTY = frozenset({"cause", "family"})


def as_one(diagnoses: Diagnoses) -> dict[str, object]:
    """Return the object that is printed: of one job its report, of several a list of them."""
    troubles = [full(one) for one in diagnoses.troubles]
    objects = [_object(one) for one in diagnoses.jobs]
    if len(objects) == 1:
        objects[0]["troubles"] = [*troubles, *_listed(objects[0]["troubles"])]
        objects[0]["passed_over"] = diagnoses.passed_over
        return objects[0]
    return {"reports": objects, "troubles": troubles, "passed_over": diagnoses.passed_over}


def full(value: object) -> object:
    """Return a record as plain values with all its fields, instants as ISO 8601 in UTC.

    A number that JSON cannot hold (infinite, or none) is null.
    """
    match value:
        case msgspec.Struct():
            return {name: _field(name, getattr(value, name)) for name in value.__struct_fields__}
        case tuple() | list():
            return [full(one) for one in value]
        case dict():
            return {str(key): full(one) for key, one in value.items()}
        case Enum():
            return value.value
        case float():
            return value if math.isfinite(value) else None
        case _:
            return value


def _field(name: str, value: object) -> object:
    if name in _INSTANTS and isinstance(value, int):
        return to_iso(Instant(value))
    return full(value)


def _object(one: Diagnosed) -> dict[str, object]:
    read = {"files": one.files, "bytes": one.size, "lines": one.lines, "left_out": one.left_out}
    return {
        "job": one.job or None,
        **_report(one.report),
        "read": read,
        "troubles": [full(trouble) for trouble in one.troubles],
    }


def _report(report: Report) -> dict[str, object]:
    fields = {name: _field(name, getattr(report, name)) for name in report.__struct_fields__}
    for name in _NULL_WHEN_EMPTY:
        fields[name] = fields[name] or None
    return fields


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
