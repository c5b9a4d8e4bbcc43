"""Who is to blame for an incident."""

from __future__ import annotations

from relight.model.findings import Domain, Evidence, Kind, Remedy
from relight.model.records import Record


class Suspect(Record, frozen=True, kw_only=True):
    """A node that may be at fault: its share of the blame (0 to 1), and why."""

    node: str
    share: float
    why: str


class SetAside(Record, frozen=True, kw_only=True):
    """A finding that was read as a symptom, and why."""

    finding: str
    rule: str
    why: str


class Alternative(Record, frozen=True, kw_only=True):
    """Another cause that the evidence allows, with its confidence (0 to 1)."""

    cause: str
    domain: Domain
    confidence: float
    why: str


class Term(Record, frozen=True, kw_only=True):
    """One term of a confidence: what was weighed, and how much it gave or took."""

    what: str
    weight: float


class Verdict(Record, frozen=True, kw_only=True):
    """Domain, cause (rule id), suspects by share, confidence and its terms, ordered evidence."""

    domain: Domain
    cause: str
    family: str
    kind: Kind
    remedy: Remedy
    sentence: str
    fingerprint: str = ""
    suspects: tuple[Suspect, ...] = ()
    ranks: tuple[int, ...] = ()
    confidence: float = 0.0
    terms: tuple[Term, ...] = ()
    root: str = ""
    """The id of the finding that is the root, or empty."""
    evidence: tuple[Evidence, ...] = ()
    set_aside: tuple[SetAside, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    revision: int = 1
