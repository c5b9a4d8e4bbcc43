"""Diagnosis of logs alone: what a report says when there is no scheduler to ask."""

from __future__ import annotations

from collections.abc import Sequence

from relight.diagnosis.endings import Ending
from relight.diagnosis.verdicts import diagnose
from relight.model.advice import Decision
from relight.model.findings import End, Finding, Kind, Remedy
from relight.model.jobs import Allocation, JobState
from relight.model.reports import FileReport, Happened, Report, RootLine

_DECISIONS = {
    Remedy.RESTART: Decision.RESTART,
    Remedy.RESTART_EXCLUDING_NODE: Decision.RESTART_EXCLUDING_NODE,
    Remedy.RESTART_EXCLUDING_NODE_AND_DRAIN: Decision.RESTART_EXCLUDING_NODE,
    Remedy.RESTART_CLEAN: Decision.RESTART,
    Remedy.HOLD: Decision.HOLD,
    Remedy.STOP: Decision.STOP,
    Remedy.CONFIRM_THEN_STOP: Decision.STOP,
    Remedy.END: Decision.NONE,
    Remedy.REPORT: Decision.NONE,
}


def examine(files: Sequence[FileReport], allocation: Allocation) -> Report:
    """Return the report on the logs of one job; ``allocation`` may be empty."""
    findings = [one for file in files for one in file.findings]
    verdict = diagnose(findings, allocation, Ending(state=JobState.FAILED))
    root = next((one for one in findings if one.id == verdict.root), None)
    progress = files[0].runs[-1].progress
    return Report(
        kind=Happened.HANG if verdict.kind is Kind.HANG else Happened.CRASH,
        ending=End.FINISHED if root is None and progress.is_finished else None,
        domain=verdict.domain,
        cause=verdict.cause,
        family=verdict.family,
        decision=_DECISIONS[verdict.remedy],
        confidence=verdict.confidence,
        sentence=verdict.sentence,
        why="",
        root=_root_line(root),
        ranks=verdict.ranks,
        nodes=tuple(one.node for one in verdict.suspects),
        last_step=progress.last_step,
        step_unit=progress.unit,
        step_seconds=progress.step_seconds,
        last_checkpoint_step=progress.best_checkpoint,
        progress=progress,
    )


def _root_line(root: Finding | None) -> RootLine | None:
    if root is None or root.place is None:
        return None
    text = next((one.text for one in root.evidence if one.is_root), "")
    return RootLine(file=root.place.file, line=root.place.line, text=text, at=root.at)
