"""Slurm's host lists, held against ClusterShell's reading of the same notation."""

from __future__ import annotations

import tracemalloc

import pytest
from ClusterShell.NodeSet import NodeSet
from hypothesis import given, settings
from hypothesis import strategies as st

from relight.model.hostlists import MOST_HOSTS, HostlistError, compress, expand

NAMES = st.from_regex(r"[a-z]{1,3}[a-z-]{0,2}(?:[0-9]{1,3})?", fullmatch=True).filter(
    lambda name: not name.endswith("-")
)
RANGES = st.tuples(st.integers(0, 60), st.integers(0, 12), st.integers(1, 4)).map(
    lambda one: f"{one[0]:0{one[2]}}-{one[0] + one[1]:0{one[2]}}"
)
BODIES = st.lists(RANGES | st.integers(0, 300).map(str), min_size=1, max_size=4).map(",".join)
WORDS = st.one_of(
    NAMES,
    st.tuples(st.sampled_from(["n", "gpu-", "rack1-n"]), BODIES).map("{0[0]}[{0[1]}]".format),
)
LISTS = st.lists(WORDS, min_size=1, max_size=4).map(",".join)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("node-01", ("node-01",)),
        ("node-[001-003,007],gpu1", ("node-001", "node-002", "node-003", "node-007", "gpu1")),
        ("n[9-11]", ("n9", "n10", "n11")),
        ("n[08-10]", ("n08", "n09", "n10")),
        ("b,a,b", ("b", "a")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("n[1-2].example.org", ("n1.example.org", "n2.example.org")),
        ("[1-2]", ("1", "2")),
        (" n1 ", ("n1",)),
        ("None assigned", ()),
        ("None", ()),
        ("(null)", ()),
        ("n/a", ()),
        ("", ()),
    ],
)
def test_a_list_names_its_hosts_in_its_own_order(text: str, hosts: tuple[str, ...]) -> None:
    assert expand(text) == hosts


@pytest.mark.parametrize(
    "text",
    [
        "n[1-2",
        "n1-2]",
        "n[[1]]",
        "n[1]]",
        "]n[",
        "n[]",
        "n[,]",
        "n[1-]",
        "n[-1]",
        "n[3-1]",
        "n[a-b]",
        "n[1-2-3]",
        "n[٣]",
        "n[²]",
        "n[0x1]",
        "n[1 - 2]",
        "a b",
        "a,",
        ",",
        "a,,b",
        "a;reboot",
        "$(reboot)",
        "n[1-2]$x",
        "n\n1",
        "nöde",
        "\x00",
    ],
)
def test_what_is_no_list_is_refused_and_named(text: str) -> None:
    with pytest.raises(HostlistError) as refusal:
        expand(text)
    assert text[:3] in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "node-[1-99999999]",
        "node-[0-18446744073709551615]",
        "a[1-1000]b[1-1000]",
        "a[1-1000]b[1-1000]c[1-1000]",
        "a[1-2]" * 60,
        "n[" + "9" * 6_000 + "]",
        "n[1-" + "9" * 6_000 + "]",
        "n[1]" * 20_000,
        "n" * 500_000 + "[",
    ],
    ids=lambda text: f"{text[:30]} ({len(text)})",
)
def test_a_list_that_would_fill_memory_is_refused_before_it_does(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(HostlistError) as refusal:
            expand(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 80_000_000
    assert len(str(refusal.value)) < 400


def test_the_largest_list_is_still_read_and_one_host_more_is_refused() -> None:
    assert len(expand(f"n[1-{MOST_HOSTS}]")) == MOST_HOSTS
    with pytest.raises(HostlistError, match="names more than"):
        expand(f"n[1-{MOST_HOSTS}],m")


@given(LISTS)
@settings(max_examples=100, deadline=None)
def test_expansion_names_what_clustershell_names(text: str) -> None:
    assert set(expand(text)) == set(NodeSet(text))


@given(st.lists(NAMES, max_size=12))
@settings(max_examples=100, deadline=None)
def test_compression_is_undone_by_expansion_and_by_clustershell(hosts: list[str]) -> None:
    short = compress(hosts)
    assert set(expand(short)) == set(hosts)
    assert set(NodeSet(short)) == set(hosts)
    assert compress(expand(short)) == short


@pytest.mark.parametrize(
    ("hosts", "short"),
    [
        ((), ""),
        (("n1",), "n1"),
        (("n3", "n1", "n2", "n2"), "n[1-3]"),
        (("n1", "n3"), "n[1,3]"),
        (("n9", "n10"), "n10,n9"),
        (("n001", "n002", "n01"), "n01,n[001-002]"),
        (("login", "n1"), "login,n1"),
        (("1", "2"), "[1-2]"),
    ],
)
def test_compression_writes_ranges_by_digit_count(hosts: tuple[str, ...], short: str) -> None:
    assert compress(hosts) == short


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_text_is_a_list_or_refused(text: str) -> None:
    try:
        hosts = expand(text)
    except HostlistError:
        return
    assert all(hosts)
