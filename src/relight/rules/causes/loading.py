"""Reads what the causes of detectors mean, from the TOML files beside this module."""

from __future__ import annotations

import tomllib
from importlib import resources

import msgspec

from relight.model.records import Record


class Cause(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One name that a detector gives to what it found.

    ``told_by`` says from what it is concluded, ``means`` what it says of the job and what not,
    ``done`` what relight does about it, ``source`` where the fact was learnt.
    """

    id: str
    title: str
    family: str
    told_by: str
    means: str
    done: str
    source: str
    file: str = ""


class _File(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cause: tuple[Cause, ...]


def load_causes() -> tuple[Cause, ...]:
    """Return every cause that a detector tells, file by file.

    Raises:
        msgspec.ValidationError: a key is missing, unknown or of another type.

    """
    folder = resources.files("relight.rules.causes")
    files = sorted(
        (one for one in folder.iterdir() if one.name.endswith(".toml")), key=lambda one: one.name
    )
    return tuple(
        msgspec.structs.replace(one, file=file.name)
        for file in files
        for one in msgspec.convert(tomllib.loads(file.read_text("utf-8")), _File).cause
    )
