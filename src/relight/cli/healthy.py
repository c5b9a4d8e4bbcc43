"""Logs of healthy runs, and which rules are heard in them although nothing is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from relight.model.findings import Kind, Role
from relight.model.instants import Instant
from relight.model.jobs import AttemptKey, JobKey
from relight.model.reports import LogFile
from relight.perception.ears import Ears, Lexicon
from relight.perception.reporting import report_of
from relight.rules.schema import Rule
from relight.sources.archives.opening import RefusedError, open_source

INDEX = "index.jsonl"
"""Beside logs: one object a line; those whose ``kind`` is not ``healthy`` are left out."""
CORPUS = Path(__file__).parents[3] / "corpus"
OWN = CORPUS / "healthy" / "timelines"
BESIDE = CORPUS.parent.parent / "shared" / "corpus" / "timelines"
"""Real logs, where a folder of them lies beside the checkout: some may not be copied into it."""
"""The project's own healthy logs, where relight runs from a checkout."""
LEDGER = "ledger.toml"
_NOBODY = AttemptKey(job=JobKey(cluster="file", scheduler_id="0"), attempt=0)


class LogUnreadable(Exception):  # noqa: N818 - named as what it tells
    """A log that cannot be tried; the message names it and says why."""


def usual_folders() -> list[Path]:
    """Return the folders of healthy logs that are listened to when none is named."""
    return [folder for folder in (OWN, BESIDE) if folder.is_dir()]


def healthy_logs(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the logs of ``folders`` that an index calls healthy, or all where there is none."""
    for folder in folders:
        index = folder / INDEX
        if not index.is_file():
            yield from sorted(folder.glob("*.log"))
            continue
        for line in index.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry.get("kind") == "healthy":
                yield folder / f"{entry['id']}.log"


def accuses(rule: Rule) -> bool:
    """Return whether a rule says that something is wrong.

    Benign rules and those that tell how a run ended accuse nobody.
    """
    return rule.role is not Role.BENIGN and rule.kind is not Kind.ENDING


def rules_heard(log: Path, ears: Ears) -> dict[str, tuple[Role, int, int, str]]:
    """Return the rules heard in one log: role, count of lines, the first one's number and text."""
    report = report_of(LogFile(file=log.name), _chunks(log), ears, Instant(0))
    heard: dict[str, tuple[Role, int, int, str]] = {}
    for one in report.findings:
        text = next((line.text for line in one.evidence if line.is_root), "")
        first = (one.role, 0, one.place.line if one.place else 0, text)
        role, count, line, text = heard.get(one.rule, first)
        heard[one.rule] = (role, count + one.count, line, text)
    return heard


def ears_of(rules: Sequence[Rule]) -> Ears:
    """Return ears for the logs of nobody's job."""
    return Ears(lexicon=Lexicon(rules), attempt=_NOBODY)


def _chunks(log: Path) -> Iterator[bytes]:
    """Yield the text of a log, decompressed.

    Raises:
        LogUnreadable: it cannot be read, or not to its end.

    """
    try:
        source = open_source(os.fspath(log), lambda _: None)
    except RefusedError as error:
        raise LogUnreadable(f"{log}: {error}") from error
    try:
        yield from source.pieces()
    finally:
        source.close()
    if source.trouble:
        raise LogUnreadable(f"{log}: {source.trouble}")
