"""What a lone log or dump cannot know is not said as if it were known."""

from __future__ import annotations

import msgspec

from relight.diagnosis.hang_readings import WITHOUT_A_NODE
from relight.diagnosis.placing import Places
from relight.diagnosis.verdicts import Located
from relight.diagnosis.witnesses import NOT_JOINED
from relight.model.findings import Domain
from relight.model.verdicts import Verdict
from relight.policy.lone import Ruling

PLACE_UNKNOWN = "ranks never came to the collective, and where they ran is not known"
"""A term of the confidence where neither logs nor an allocation place the ranks."""


def with_what_is_known(located: Located, places: Places) -> Verdict:
    """Return the verdict; where nothing tells where ranks ran, that is said and no more."""
    verdict = located.verdict
    root = located.root
    if root is None or root.rule != NOT_JOINED or places.of(root):
        return verdict
    scattered = WITHOUT_A_NODE[NOT_JOINED].what
    terms = tuple(
        msgspec.structs.replace(one, what=PLACE_UNKNOWN) if one.what == scattered else one
        for one in verdict.terms
    )
    return msgspec.structs.replace(verdict, terms=terms)


def without_certainty(ruling: Ruling, verdict: Verdict) -> Ruling:
    """Return the ruling; that a fault stays with its node is said of broken hardware alone."""
    stays = ruling.reason.code == "restart-excluding-node" and bool(ruling.exclude)
    if not stays or verdict.domain is Domain.HARDWARE:
        return ruling
    whose = "that node" if len(ruling.exclude) == 1 else "those nodes"
    sentence = f"The fault may lie with {whose}: the next run without will tell."
    return msgspec.structs.replace(
        ruling, reason=msgspec.structs.replace(ruling.reason, sentence=sentence)
    )
