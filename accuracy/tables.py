"""Scores as tables for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from accuracy.measuring import Measured, Outcome
from accuracy.scoring import ASPECTS, Score, shares

_SHOWN = 160


def summary(measured: Sequence[Measured]) -> str:
    """Return one line a corpus and method: how much of each aspect is right."""
    heads = ("corpus", "by", "cases", *ASPECTS, "false stop", "false alarm", "strays", "ms/case")
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for one in measured:
        for method, scores in one.scores.items():
            lines.append(_row(one, method, scores))
    return "\n".join(lines)


def confusion(outcomes: Sequence[Outcome], aspect: str) -> str:
    """Return a matrix of what is right (rows) and what was said (columns)."""
    pairs = Counter(
        (one.case.label.domain, one.answer.domain or "")
        if aspect == "domain"
        else (one.case.label.retry, one.answer.decision)
        for one in outcomes
    )
    rows = sorted({right for right, _ in pairs})
    columns = sorted({said for _, said in pairs})
    lines = [
        f"| {aspect}: right \\ said | " + " | ".join(columns) + " |",
        "| --- |" + " ---: |" * len(columns),
    ]
    for row in rows:
        cells = [str(pairs[row, column] or "") for column in columns]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def misses(outcomes: Sequence[Outcome]) -> str:
    """Return a line for every answer that is wrong somewhere: what was said, what is right."""
    lines: list[str] = []
    for one in outcomes:
        wrong = [*one.score.wrong, *one.score.strays]
        if not wrong and not one.score.false_alarm:
            continue
        alarm = "  FALSE STOP" if one.score.false_stop else ""
        alarm += "  FALSE ALARM" if one.score.false_alarm else ""
        lines.append(f"{one.case.corpus}/{one.case.label.id}{alarm}")
        lines += [f"    {_said(one, name)}" for name in one.score.wrong]
        lines += [f"    named {name}, which the label does not" for name in one.score.strays]
    return "\n".join(lines)


def _said(one: Outcome, aspect: str) -> str:
    label, answer = one.case.label, one.answer
    said, right = {
        "kind": (answer.kind, sorted(label.kinds)),
        "ending": (answer.ending, label.kind),
        "domain": (answer.domain, sorted(label.domains)),
        "family": (answer.family, sorted(label.families)),
        "root line": (
            f"{answer.root_line} ({answer.cause}: {answer.text[:_SHOWN]})",
            sorted(label.root_lines),
        ),
        "rank": (list(answer.ranks), list(label.ranks)),
        "node": (list(answer.nodes), list(label.nodes)),
        "decision": (f"{answer.decision} ({answer.cause})", sorted(label.decisions)),
        "last step": (answer.last_step, sorted(map(str, label.steps))),
    }[aspect]
    return f"{aspect}: said {said}, right {right}"


def _row(one: Measured, method: str, scores: Sequence[Score]) -> str:
    found = shares(scores)
    cells = [one.corpus, method, str(len(scores))]
    for name in ASPECTS:
        percent = found[name].percent
        cells.append("" if percent is None else f"{percent:.0f} ({found[name].asked})")
    cells.append(str(sum(score.false_stop for score in scores)))
    cells.append(str(sum(score.false_alarm for score in scores)))
    cells.append(str(sum(bool(score.strays) for score in scores)))
    is_ours = method == "relight" and one.outcomes
    cells.append(f"{one.milliseconds:.1f}" if is_ours else "")
    return "| " + " | ".join(cells) + " |"
