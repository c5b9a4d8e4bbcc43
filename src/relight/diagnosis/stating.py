"""A verdict stated on what a witness told, where no line of the log is its root."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from relight.diagnosis import confidences
from relight.diagnosis.causes import Located
from relight.diagnosis.sentences import clause, plainly, sentence_of
from relight.diagnosis.sifting import is_mere_warning
from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.records import Record
from relight.model.verdicts import Suspect, Term, Verdict

_FEWEST_STEPS = 2
"""Steps after a line that show that the run survived it; one may have been on its way."""


class Reading(Record, frozen=True, kw_only=True):
    """How a sign is read: whose fault, what helps, and how much it weighs (0 to 1).

    ``what`` is the term of the confidence, ``why`` what makes a node that it names suspect.
    """

    domain: Domain
    remedy: Remedy
    weight: float
    what: str
    why: str = ""
    kind: Kind = Kind.HANG


def stated(
    sign: Finding,
    reading: Reading,
    *,
    nodes: tuple[str, ...] = (),
    ranks: tuple[int, ...] = (),
    complaint: Finding | None = None,
) -> Located:
    """Return a verdict whose cause is ``sign``; ``complaint`` is what it explains.

    What returns is told by both: a hang of another cause is another failure, and the same one
    is the same, whichever GPU waited this time.
    """
    terms = (Term(what=reading.what, weight=reading.weight),)
    told = (sign,) if complaint is None or complaint.id == sign.id else (complaint, sign)
    share = round(1 / len(nodes), 3) if nodes else 0.0
    verdict = Verdict(
        domain=reading.domain,
        cause=sign.rule,
        family=sign.family,
        kind=reading.kind,
        remedy=reading.remedy,
        sentence=_sentence(sign, nodes, ranks, complaint),
        fingerprint="|".join(one.fingerprint or one.rule for one in told),
        suspects=tuple(Suspect(node=node, share=share, why=reading.why) for node in nodes),
        ranks=ranks,
        confidence=confidences.total(terms),
        terms=terms,
        root=sign.id,
        evidence=sign.evidence,
    )
    return Located(verdict=verdict, root=sign, nodes=nodes, ranks=ranks, remedy=reading.remedy)


def _sentence(
    sign: Finding, nodes: tuple[str, ...], ranks: tuple[int, ...], complaint: Finding | None
) -> str:
    said = sentence_of(msgspec.structs.replace(sign, role=Role.EITHER), nodes, ranks)
    if complaint is None or complaint.id == sign.id:
        return said
    return f"{said_of(complaint)}; {said}"


def said_of(finding: Finding) -> str:
    """Return the sentence of a finding as a clause."""
    return clause(plainly(finding.sentence))


def is_explanation(root: Finding | None) -> bool:
    """Tell whether a line says by itself why a run does not do well: it is no symptom of that."""
    if root is None or root.role not in (Role.ROOT, Role.EITHER) or root.remedy is Remedy.REPORT:
        return False
    return root.kind not in (Kind.HANG, Kind.SLOW) and not is_mere_warning(root)


def went_on(root: Finding, complaint: Finding) -> bool:
    """Tell whether steps were completed between a line and a later complaint."""
    if root.step is None or complaint.step is None:
        return False
    return complaint.step - root.step >= _FEWEST_STEPS


def with_words(located: Located, words: str, terms: Sequence[Term] = ()) -> Located:
    """Return a verdict whose sentence goes on with ``words``, and which weighs ``terms`` too."""
    verdict = located.verdict
    weighed = (*verdict.terms, *terms)
    return msgspec.structs.replace(
        located,
        verdict=msgspec.structs.replace(
            verdict,
            sentence=f"{verdict.sentence}{words}",
            terms=weighed,
            confidence=confidences.total(weighed) if terms else verdict.confidence,
        ),
    )
