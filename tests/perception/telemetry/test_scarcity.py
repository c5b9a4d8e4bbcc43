"""Where metrics tell too little of a silence it is said why, and nothing else is."""

from __future__ import annotations

import msgspec
import pytest

from relight.model.evidence import Window
from relight.model.instants import EPOCH, from_unix, seconds
from relight.model.jobs import Allocation, AttemptKey
from relight.model.telemetry import Series, Sight
from relight.perception.telemetry.scarcity import scarcity
from relight.rules.metrics.judging import instants
from relight.rules.metrics.notation import read_series

NODES = ("node-1", "node-2")
UTIL, LOAD = "DCGM_FI_DEV_GPU_UTIL", "node_load1"


def window(silent: float | None, until: float) -> Window:
    return Window(
        attempt=AttemptKey.parse("main:7-0"),
        allocation=Allocation(nodes=NODES),
        since=EPOCH,
        until=from_unix(until),
        silent_since=None if silent is None else from_unix(silent),
    )


def told(values: str, silent: float | None, until: float, *, load: str = "1x99") -> tuple[str, ...]:
    series = [
        Series(
            metric=metric,
            node=node,
            device="0" if metric == UTIL else "",
            labels={},
            samples=instants(EPOCH, seconds(5), read_series(shown)),
        )
        for node in NODES
        for metric, shown in ((UTIL, values), (LOAD, load))
        if shown
    ]
    sight = Sight(
        source="dcgm",
        since=EPOCH,
        until=from_unix(until),
        series=tuple(series),
        interval=5.0,
    )
    return scarcity(sight, window(silent, until))


@pytest.mark.parametrize(("until", "count"), [(89.0, "0 scrapes"), (94.0, "1 scrape lies")])
def test_too_few_scrapes_since_the_silence_are_counted(until: float, count: str) -> None:
    (sentence,) = told("100x99", 90, until)
    assert count in sentence
    assert "3 are needed" in sentence
    assert "every 5 s" in sentence


def test_series_that_stopped_for_all_gpus_are_said_to_have_stopped() -> None:
    (sentence,) = told("100x10", 40, 120)
    assert "stopped at 1970-01-01T00:00:50Z" in sentence


@pytest.mark.parametrize(
    ("values", "silent", "until"),
    [("100x99", 60.0, 120.0), ("100x99", None, 120.0), ("", 60.0, 120.0)],
    ids=["enough was seen", "nobody asked about a silence", "no series of a GPU is there"],
)
def test_where_enough_or_nothing_is_seen_nothing_is_said(
    values: str, silent: float | None, until: float
) -> None:
    assert told(values, silent, until) == ()


def test_an_unseen_server_is_told_elsewhere() -> None:
    sight = Sight(source="dcgm", since=EPOCH, until=from_unix(9), unseen="No server answers.")
    assert scarcity(sight, window(1, 9)) == ()
    assert scarcity(msgspec.structs.replace(sight, unseen=""), window(1, 9)) == ()
