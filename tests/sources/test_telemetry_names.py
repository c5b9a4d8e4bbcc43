"""Which node a label's value names, and what is asked for it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.sources.telemetry.names import NodeNames, host_of, matcher, settle

NODES = ("gpu-01", "gpu-02", "gpu-02b", "login.cluster.example", "10.0.0.7", "fd00::7")


@pytest.mark.parametrize(
    ("value", "node"),
    [
        ("gpu-01", "gpu-01"),
        ("gpu-01:9400", "gpu-01"),
        ("gpu-01.cluster.example", "gpu-01"),
        ("gpu-01.cluster.example:9400", "gpu-01"),
        ("login:9100", "login.cluster.example"),
        ("login.cluster.example", "login.cluster.example"),
        ("login.elsewhere:1", "login.cluster.example"),
        ("10.0.0.7:9400", "10.0.0.7"),
        ("[fd00::7]:9400", "fd00::7"),
        ("fd00::7", "fd00::7"),
        ("10.0.0.8:9400", None),
        ("10", None),
        ("gpu-1", None),
        ("gpu-02c", None),
        ("GPU-01", None),
        ("dcgm-exporter-x7k2p", None),
        ("", None),
        (":", None),
        ("gpu-01:9400:1", None),
    ],
)
def test_a_value_names_a_node_short_or_in_full_with_or_without_a_port(
    value: str, node: str | None
) -> None:
    assert NodeNames(NODES).node_of(value) == node


def test_a_value_that_fits_several_nodes_fits_none() -> None:
    names = NodeNames(("n1.east", "n1.west"))
    assert names.node_of("n1") is None
    assert names.node_of("n1.east:9400") == "n1.east"


@pytest.mark.parametrize(
    ("values", "nodes", "disputed"),
    [
        (("n1.here", "n2.here"), {"n1.here": "n1", "n2.here": "n2"}, set()),
        (("n1.here:9400", "n1.here:9100"), {"n1.here:9400": "n1", "n1.here:9100": "n1"}, set()),
        (("n1.here", "n1.there"), {}, {"n1"}),
        (("n1", "n1.there"), {"n1": "n1"}, set()),
        (("n1:9400", "n1.there:9400"), {"n1:9400": "n1"}, set()),
        (("other", ""), {}, set()),
    ],
)
def test_two_machines_of_one_short_name_are_told_apart_or_neither_is_believed(
    values: tuple[str, ...], nodes: dict[str, str], disputed: set[str]
) -> None:
    settled = settle(values, NodeNames(("n1", "n2")))
    assert settled.nodes == nodes
    assert set(settled.disputed) == disputed


@pytest.mark.parametrize(
    ("value", "host"),
    [("a:1", "a"), ("a", "a"), ("[::1]:1", "::1"), ("::1", "::1"), ("a:b", "a:b"), ("[]", "")],
)
def test_a_port_is_no_part_of_a_host(value: str, host: str) -> None:
    assert host_of(value) == host


def _asks_for(value: str, nodes: tuple[str, ...]) -> bool:
    """Tell whether the server would give a series with this value, as PromQL reads the matcher."""
    label, _, quoted = matcher("instance", nodes).partition("=~")
    assert label == "instance"
    return re.fullmatch(quoted.strip('"').replace("\\\\", "\\"), value) is not None


def test_names_that_no_scheduler_gives_are_not_asked_for() -> None:
    assert NodeNames(('n1"} or up{a="', "n2", "a b", "", "n|.*", "x" * 300)).nodes == ("n2",)


@given(st.text(alphabet="ab1-.:[]9", max_size=12))
def test_every_value_that_names_a_node_is_asked_for(value: str) -> None:
    nodes = ("a1", "b.a", "ab-9.b", "10.0.0.1", "a::b")
    if NodeNames(nodes).node_of(value) is not None and host_of(value) == value:
        assert _asks_for(value, nodes)


@pytest.mark.parametrize(
    ("value", "is_asked"),
    [
        ("gpu-01:9400", True),
        ("gpu-01.cluster:9400", True),
        ("[fd00::7]:9400", True),
        ("10.0.0.7:1", True),
        ("gpu-011", False),
        ("gpu-02bb", False),
        ("10a0b0c7", False),
        ("xgpu-01", False),
    ],
)
def test_what_is_asked_for_is_what_may_name_a_node(value: str, *, is_asked: bool) -> None:
    assert _asks_for(value, NODES) == is_asked


def test_many_nodes_are_asked_for_in_chunks_and_chosen_evenly() -> None:
    names = NodeNames(f"n{number:04d}" for number in range(1_000))
    assert [len(chunk) for chunk in names.chunks()] == [100] * 10
    chosen = names.spread()
    assert len(chosen) == 100
    assert (chosen[0], chosen[-1]) == ("n0000", "n0990")
    assert NodeNames(("n1", "n2")).spread() == ("n1", "n2")
    assert len(matcher("instance", next(names.chunks()))) < 4_000
