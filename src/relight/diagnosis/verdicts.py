"""Findings and an ending to a verdict."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from relight.diagnosis.causes import Located, of_events
from relight.diagnosis.courses import Course
from relight.diagnosis.endings import (
    Ending,
    verdict_of_plain_ending,
    verdict_without_findings,
)
from relight.diagnosis.fusing import fused
from relight.diagnosis.naming import by_one_name
from relight.diagnosis.placing import Places
from relight.diagnosis.trust import hear
from relight.diagnosis.witnesses import is_line
from relight.model.findings import Finding
from relight.model.jobs import Allocation
from relight.model.verdicts import Verdict

__all__ = ("Located", "diagnose", "locate")


def diagnose(
    findings: Sequence[Finding],
    allocation: Allocation,
    ending: Ending,
    logs_unseen: str = "",
) -> Verdict:
    """Return who is to blame, from findings in any order and what the scheduler says.

    The scheduler's word for an end that is no failure stands above every line; its word
    that a node went down stands above every other cause.
    """
    plain = verdict_of_plain_ending(ending)
    if plain is not None:
        return plain
    findings = by_one_name(findings, allocation)
    places = Places(findings, allocation)
    located = locate(findings, places, ending)
    if located is not None:
        return located.verdict
    unheard = hear(findings, places, ending).set_aside
    return msgspec.structs.replace(verdict_without_findings(ending, logs_unseen), set_aside=unheard)


def locate(
    findings: Sequence[Finding], places: Places, ending: Ending, course: Course | None = None
) -> Located | None:
    """Return the verdict that findings lead to and where its cause lies, None without one.

    Where only lines of the log speak, their cascade alone decides.
    """
    if all(is_line(one) for one in findings):
        return of_events(findings, places, ending, course)
    return fused(hear(findings, places, ending), places, ending, course)
