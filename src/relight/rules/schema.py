"""What one failure signature is: a rule, as it stands in a TOML file."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from relight.model.findings import Domain, End, Kind, Provenance, Reach, Remedy, Role
from relight.model.records import Record
from relight.rules.tables import problems_with


class Status(StrEnum):
    """How far a rule is trusted; a retired one only keeps its id from being given again."""

    PROVEN = "proven"
    ASSUMED = "assumed"
    RETIRED = "retired"


class Miss(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line that looks alike and must not match, and why it must not."""

    text: str
    why: str


class Rule(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure signature with its own evidence.

    ``patterns`` are regular expressions that Hyperscan and RE2 both understand, tried on one
    whole line, prefixes of rank, time and host included; the first that matches wins. Their named
    groups become captures: ``node`` (a host or a host list), ``rank`` (a number or ranges such
    as ``0-3,7``), ``peer`` (host or address) and ``device`` go into the finding, ``code``,
    ``signal`` and the others into ``sentence``, where ``{name}`` stands for a capture and a
    part in brackets is left out when
    a capture in it is missing. A line in which one of ``unless``
    matches too is passed over: a warning that quotes the same words. ``provenance`` says who
    writes such a line; a copy of it in a job's own log stays the job's claim. ``evidence`` is
    where the fact was learnt, ``hits`` are lines that must match, ``misses`` lines that must
    not, ``known_misses`` lines that a person would count to this failure and that it does not
    hear, with the reason. ``why`` tells in a sentence why role, domain and remedy are what
    they are. ``reach`` holds what changes where the same thing shows on one node, everywhere,
    or before the first step. ``ending`` is set by a rule whose line tells how a run ended.
    """

    id: str
    family: str
    kind: Kind
    role: Role
    domain: Domain
    remedy: Remedy
    title: str
    sentence: str
    patterns: tuple[str, ...]
    evidence: str
    why: str = ""
    status: Status = Status.PROVEN
    reach: Reach = Reach()
    ending: End | None = None
    provenance: Provenance = Provenance.JOB_LOG
    unless: tuple[str, ...] = ()
    task_gone: bool = False
    hits: tuple[str, ...] = ()
    misses: tuple[Miss, ...] = ()
    known_misses: tuple[Miss, ...] = ()


def rule_from(table: object) -> Rule:
    """Return the rule that a TOML table tells of.

    Raises:
        msgspec.ValidationError: a key is missing, unknown or of another type; the message
            names the first one, ``problems_of`` all of them.

    """
    return msgspec.convert(table, Rule)


def problems_of(table: object) -> list[str]:
    """Return everything that keeps a TOML table from being a rule, each in one sentence."""
    return problems_with(table, Rule, "a rule")
