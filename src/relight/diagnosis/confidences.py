"""How sure a verdict is, as a sum of terms that are told one by one."""

from __future__ import annotations

from collections.abc import Sequence

from relight.model.findings import Finding, Kind, Role
from relight.model.verdicts import Term

_ROLE_WEIGHT = {Role.ROOT: 0.7, Role.EITHER: 0.45, Role.SYMPTOM: 0.25, Role.BENIGN: 0.05}
_ROLE_WORDS = {
    Role.ROOT: "the line can be the cause by itself",
    Role.EITHER: "the line may be the cause",
    Role.SYMPTOM: "only symptoms are seen",
    Role.BENIGN: "only harmless lines are seen",
}
_LEAST, _MOST = 0.05, 0.98
"""Nothing that is read from a log is certain, and nothing that was read is worth nothing."""

OF_NOTHING_WRONG = 0.9
"""Of a log that shows no trouble: what it does not show may yet have happened."""

OF_A_LOG_WITHOUT_TRAINING = 0.5
OF_AN_EMPTY_LOG = 0.05


def terms_of(
    root: Finding, *, points_at_node: bool, is_shared: bool, rivals: Sequence[Finding]
) -> tuple[Term, ...]:
    """Return what was weighed for a verdict whose cause is ``root``."""
    terms = [Term(what=_ROLE_WORDS[root.role], weight=_ROLE_WEIGHT[root.role])]
    if points_at_node and not is_shared:
        terms.append(Term(what="it points at a node of this job", weight=0.15))
    if is_shared:
        terms.append(Term(what="most nodes show the same, so none is blamed", weight=-0.2))
    if rivals:
        terms.append(Term(what="other causes are possible", weight=-0.1))
    else:
        terms.append(Term(what="nothing else explains it", weight=0.1))
    if root.role is Role.SYMPTOM and root.kind is Kind.HANG:
        terms.append(Term(what="that ranks waited for one another is certain", weight=0.25))
    return tuple(terms)


def total(terms: Sequence[Term]) -> float:
    """Return the confidence that terms add up to, between 0 and 1."""
    return round(min(_MOST, max(_LEAST, sum(term.weight for term in terms))), 2)


def of_rival(rival: Finding) -> float:
    """Return the confidence of a cause that another one was preferred to."""
    return round(_ROLE_WEIGHT[rival.role] / 2, 2)
