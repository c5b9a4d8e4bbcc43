"""``python -m accuracy.healthy``: write the project's own healthy logs, one a framework.

They are generated, so that nobody's log is copied, and committed, so that they can be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from relight.testing.frameworks import FRAMEWORKS, Dress, Prefix, generate

FOLDER = Path(__file__).resolve().parent.parent / "corpus" / "healthy" / "timelines"
_PREFIXES = tuple(Prefix)
_STEPS = 60


def logs() -> Iterator[tuple[str, bytes, dict[str, object]]]:
    """Yield the name of each log, its bytes, and its line of the index.

    Prefixes, colours and line ends go round, and each holds lines that only sound alarming.
    """
    for number, name in enumerate(sorted(FRAMEWORKS)):
        dress = Dress(
            prefix=_PREFIXES[number % len(_PREFIXES)],
            colours=number % 5 == 0,
            crlf=number % 7 == 0,
            noise=7,
        )
        made = generate(name, seed=number, steps=_STEPS, dress=dress)
        entry = {
            "id": name,
            "kind": "healthy",
            "first_step": made.truth.first_step,
            "last_step": made.truth.last_step,
            "step_unit": made.truth.unit.value,
            "median_step_seconds": made.truth.step_seconds,
            "complete": made.truth.is_finished,
        }
        yield name, made.data, entry


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    index = []
    for name, data, entry in logs():
        (FOLDER / f"{name}.log").write_bytes(data)
        index.append(json.dumps(entry) + "\n")
    (FOLDER / "index.jsonl").write_text("".join(index), encoding="utf-8")


if __name__ == "__main__":
    main()
