"""``python -m accuracy``: measure the diagnosis on labelled logs, and print it.

Exit code 1 when a run was told to stop that should go on, or a floor is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from accuracy.answers import ears, report_on
from accuracy.labels import Case, LabelError, cases_of, corpora, timelines_of
from accuracy.measuring import Measured, measure, together
from accuracy.rhythm_runs import Size, run
from accuracy.scoring import ASPECTS, shares
from accuracy.tables import confusion, misses, summary

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was asked for, print it, and return the exit code."""
    options = _options(arguments)
    if options.rhythms:
        return _rhythms(options)
    try:
        cases = _cases(options)
    except LabelError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not cases:
        sys.stderr.write("No labelled log was found: name a corpus with --corpus DIR.\n")
        return 2
    if options.case:
        return _one(cases, options.case)
    listening = ears()
    measured = [measure(name, found, listening) for name, found in cases.items()]
    whole = together(measured)
    missed = _missed(whole, options.floor)
    if options.json:
        encoded = msgspec.json.encode({"measured": measured, "missed": missed})
        sys.stdout.write(encoded.decode() + "\n")
    else:
        sys.stdout.write(_page(measured, whole))
    for line in missed:
        sys.stderr.write(f"{line}\n")
    return 1 if missed else 0


def _rhythms(options: argparse.Namespace) -> int:
    folders = corpora(options.corpus, ROOT)
    size = Size(options.lives, options.hours, options.seed, options.workers)
    try:
        run(folders, size, as_json=options.json)
    except LabelError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _cases(options: argparse.Namespace) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for folder in corpora(options.corpus, ROOT):
        found[folder.name] = cases_of(folder)
        if not options.no_timelines and (runs := timelines_of(folder)):
            found[f"{folder.name}/timelines"] = runs
    return {name: cases for name, cases in found.items() if cases}


def _one(cases: dict[str, list[Case]], wanted: str) -> int:
    found = [case for listed in cases.values() for case in listed if case.label.id == wanted]
    if not found:
        sys.stderr.write(f"No case has the id {wanted}.\n")
        return 2
    listening = ears()
    for case in found:
        report = report_on(Path(case.path), listening)
        for part in (case, report):
            sys.stdout.write(msgspec.json.format(msgspec.json.encode(part)).decode() + "\n")
    return 0


def _page(measured: Sequence[Measured], whole: Measured) -> str:
    many = [*measured, whole] if len(measured) > 1 else measured
    parts = [
        misses(whole.outcomes),
        summary(many),
        confusion(whole.outcomes, "domain"),
        confusion(whole.outcomes, "decision"),
    ]
    if whole.calibration:
        right, wrong = whole.calibration
        parts.append(f"Mean confidence: {right:.2f} where right, {wrong:.2f} where wrong.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _missed(whole: Measured, floors: Sequence[tuple[str, float]]) -> list[str]:
    ours = whole.scores["relight"]
    found = shares(ours)
    missed: list[str] = []
    for name, floor in floors:
        percent = found[name].percent
        if percent is not None and percent < floor:
            missed.append(f"{name}: {percent:.1f} % is below the floor of {floor:g} %")
    stops = sum(one.false_stop for one in ours)
    if stops:
        missed.append(f"{stops} runs were told to stop that should go on")
    return missed


def _floor(text: str) -> tuple[str, float]:
    name, _, percent = text.partition("=")
    if name not in ASPECTS:
        raise argparse.ArgumentTypeError(f'"{name}" is none of: {", ".join(ASPECTS)}')
    try:
        return name, float(percent)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" has no number: write {name}=90') from None


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m accuracy", description=__doc__)
    parser.add_argument(
        "--corpus", action="append", type=Path, default=[], help="a folder with labels.jsonl"
    )
    parser.add_argument("--case", default="", help="show the whole report on one case")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--no-timelines", action="store_true", help="leave out the long runs")
    parser.add_argument(
        "--rhythms", action="store_true", help="measure how hangs and slowdowns are found instead"
    )
    parser.add_argument("--lives", type=int, default=Size().lives, help="rhythms: generated lives")
    parser.add_argument(
        "--hours", type=float, default=Size().hours, help="rhythms: length of a life"
    )
    parser.add_argument("--seed", type=int, default=Size().seed, help="rhythms: other lives")
    parser.add_argument("--workers", type=int, default=0, help="rhythms: processes; 0: all cores")
    parser.add_argument(
        "--floor",
        action="append",
        type=_floor,
        default=[],
        metavar="ASPECT=PERCENT",
        help="fail below this share, such as domain=95",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
