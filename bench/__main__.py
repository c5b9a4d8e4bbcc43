"""``python -m bench [matching|restart|idle|rhythms] [--json]``: measure and print."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable

import msgspec

from bench import idle, matching, restart, rhythms
from bench.conditions import conditions
from bench.tables import Result, table

LASTS = {
    "matching": "five minutes",
    "restart": "six minutes",
    "idle": "four minutes",
    "rhythms": "a minute",
}
"""The parts, in their order, and about how long each takes."""


def main() -> None:
    """Measure what was asked for and print it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = _options()
    parts: dict[str, Callable[[], Result]] = {
        "matching": lambda: matching.measure(
            megabytes=options.megabytes, repeats=options.repeats, slow=not options.no_slow
        ),
        "restart": lambda: restart.measure(runs=options.runs, plain=not options.no_plain),
        "idle": lambda: idle.measure(jobs=options.jobs, seconds=options.seconds),
        "rhythms": lambda: rhythms.measure(jobs=options.running),
    }
    known = conditions()
    if not options.json:
        sys.stdout.write("".join(f"{name}: {value}\n" for name, value in known.items()))
    results: list[Result] = []
    for name in options.parts or LASTS:
        sys.stderr.write(f"Measuring {name}, which takes about {LASTS[name]} ...\n")
        result = parts[name]()
        results.append(result)
        if not options.json:
            sys.stdout.write(f"\n{table([result])}\n")
            sys.stdout.flush()
    if options.json:
        whole = msgspec.json.encode({"conditions": known, "results": results})
        sys.stdout.write(msgspec.json.format(whole).decode() + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*LASTS, []], help="all when none is named")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--megabytes", type=int, default=100, help="matching: size of a log")
    parser.add_argument("--repeats", type=int, default=5, help="matching: passes a method")
    parser.add_argument(
        "--no-slow", action="store_true", help="matching: leave out grep and Hyperscan alone"
    )
    parser.add_argument("--runs", type=int, default=5, help="restart: crashes a setting")
    parser.add_argument(
        "--no-plain", action="store_true", help="restart: leave out the minutes of Slurm alone"
    )
    parser.add_argument("--jobs", type=int, default=1000, help="idle: jobs that wait")
    parser.add_argument("--running", type=int, default=10_000, help="rhythms: jobs that run")
    parser.add_argument("--seconds", type=int, default=60, help="idle: length of each measurement")
    return parser.parse_args()


if __name__ == "__main__":
    main()
