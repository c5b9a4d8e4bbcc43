"""Series with samples in the past, as text that a server takes in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Told:
    """One series and its samples: (Unix seconds, value), where a value may be NaN or infinite."""

    metric: str
    labels: dict[str, str] = field(default_factory=dict)
    samples: tuple[tuple[int, float], ...] = ()

    @property
    def name(self) -> str:
        """Return the series as the exposition format has it."""
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in self.labels.items())
        return f"{self.metric}{{{labels}}}"


def steady(metric: str, value: float, times: Iterable[int], **labels: str) -> Told:
    """Return a series that has the same value at all times."""
    return Told(metric, labels, tuple((at, value) for at in times))


def as_prometheus_text(series: Iterable[Told]) -> Iterator[str]:
    """Yield lines of Prometheus's exposition format, with times in milliseconds."""
    for one in series:
        for at, value in one.samples:
            yield f"{one.name} {value!r} {at * 1000}\n"


def as_openmetrics(series: Iterable[Told]) -> Iterator[str]:
    """Yield lines of OpenMetrics, with times in seconds; one metric stands in one place."""
    for one in sorted(series, key=lambda told: told.name):
        for at, value in one.samples:
            yield f"{one.name} {value!r} {at}\n"
    yield "# EOF\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
