"""Rules over metrics: their files, their short notation, and what follows from a result."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relight.model.evidence import Window
from relight.model.findings import Provenance
from relight.model.instants import EPOCH, from_unix, seconds
from relight.model.jobs import Allocation, AttemptKey, JobKey
from relight.model.telemetry import Series
from relight.rules.loading import load
from relight.rules.metrics import (
    MetricRule,
    MetricRuleError,
    findings_of,
    load_metric_rules,
)
from relight.rules.metrics.judging import instants
from relight.rules.metrics.linting import lint
from relight.rules.metrics.loading import MetricEntry, metric_catalogue
from relight.rules.metrics.notation import read_series
from relight.rules.metrics.schema import metric_rule_from, problems_of

DOCS = Path(__file__).parents[2] / "docs"
GOOD: dict[str, Any] = {
    "id": "site-scratch-full",
    "family": "disk_full",
    "kind": "node",
    "role": "either",
    "domain": "system_software",
    "remedy": "restart_excluding_node",
    "title": "The scratch disk of a node is full",
    "expr": "site_scratch_used",
    "node_label": "instance",
    "device_label": "mountpoint",
    "above": 0.99,
    "for": 3,
    "sentence": "{mountpoint} of {node} is full ({value}).",
    "evidence": "the site's own exporter",
    "why": "The disk is the node's own.",
    "test": [
        {
            "what": "full",
            "series": [
                {"labels": {"instance": "node-1", "mountpoint": "/s"}, "values": "0.5x3 1x5"}
            ],
            "names": ["node-1"],
        },
        {
            "what": "not full",
            "series": [{"labels": {"instance": "node-1", "mountpoint": "/s"}, "values": "0.5x9"}],
        },
    ],
}
WINDOW = Window(
    attempt=AttemptKey(job=JobKey(cluster="main", scheduler_id="7"), attempt=0),
    allocation=Allocation(nodes=("node-1", "node-2.site")),
    since=EPOCH,
    until=from_unix(900),
)


def rule(**changes: object) -> MetricRule:
    return metric_rule_from({**GOOD, **changes})


def result(node: str, values: str, device: str = "/s", **labels: str) -> Series:
    return Series(
        metric="site-scratch-full",
        node=node,
        device=device,
        labels={"mountpoint": device, **labels},
        samples=instants(EPOCH, seconds(30), read_series(values)),
    )


SERIES = [
    ("", ()),
    ("5", (5.0,)),
    ("5 _ 6", (5.0, None, 6.0)),
    ("1x3", (1.0, 1.0, 1.0, 1.0)),
    ("1 _x3", (1.0, None, None, None)),
    ("-2+4x3", (-2.0, 2.0, 6.0, 10.0)),
    ("1-0.5x2", (1.0, 0.5, 0.0)),
    ("2e3x1", (2000.0, 2000.0)),
    ("1e300+1e308x2", (1e300, 1e308 + 1e300, None)),
]


@pytest.mark.parametrize(("text", "values"), SERIES)
def test_a_series_is_written_as_promtool_writes_it(
    text: str, values: tuple[float | None, ...]
) -> None:
    assert read_series(text) == values


@pytest.mark.parametrize(
    "text", ["x3", "5x", "a", "5y3", "1+x3", "5x-3", "NaN", "1x99999", "\u0661"]
)
def test_what_is_no_series_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"write 5, _, 5x3|shorten it"):
        read_series(text)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        values = read_series(text)
    except ValueError:
        return
    assert len(values) <= 10_000


@pytest.mark.parametrize("entry", metric_catalogue(), ids=lambda entry: entry.rule.id)
def test_a_packaged_rule_keeps_the_laws_and_passes_its_own_tests(entry: MetricEntry) -> None:
    assert lint(entry.rule) == []


def test_no_id_is_also_that_of_a_signature() -> None:
    signatures = {one.id for one in load()}
    assert not {one.id for one in load_metric_rules()} & signatures


def test_a_result_that_lasts_names_its_node() -> None:
    (found,) = findings_of(
        rule(), [result("node-1", "0.5x5 1x4"), result("node-2", "0.5x9")], WINDOW
    )
    assert (found.rule, found.nodes, found.devices) == ("site-scratch-full", ("node-1",), ("/s",))
    assert found.provenance is Provenance.TELEMETRY
    assert found.sentence == "/s of node-1 is full (1)."
    assert found.at == from_unix(180)
    assert found.fingerprint == "site-scratch-full"
    assert found.evidence[0].text == ("node-1 (/s): site-scratch-full 1 over 3 scrapes in a row")


ROWS = [
    (3, "1x2", True),
    (3, "1x1", False),
    (3, "1 1 _ 1 1 _ 1 1", False),
    (3, "0x3 1 1 0 1 1 0", False),
    (1, "0x3 1 0x3", True),
    ("90s", "1x3", True),
    ("90s", "1x2", False),
    (3, "_x20", False),
    (3, "", False),
]


@pytest.mark.parametrize(("lasting", "values", "is_told"), ROWS)
def test_it_must_last_without_a_gap(lasting: int | str, values: str, *, is_told: bool) -> None:
    found = findings_of(rule(**{"for": lasting}), [result("node-1", values)], WINDOW)
    assert bool(found) is is_told


def test_a_low_value_counts_where_below_is_given() -> None:
    low = msgspec.structs.replace(rule(), above=None, below=10.0)
    assert findings_of(low, [result("node-1", "9x5")], WINDOW)
    assert not findings_of(low, [result("node-1", "10x5")], WINDOW)


def test_foreign_nodes_and_samples_outside_of_the_window_say_nothing() -> None:
    late = msgspec.structs.replace(WINDOW, since=from_unix(600))
    assert findings_of(rule(), [result("node-3", "1x9"), result("", "1x9")], WINDOW) == ()
    assert findings_of(rule(), [result("node-1", "1x9")], late) == ()


def test_a_name_is_matched_as_the_allocation_knows_it_and_told_once() -> None:
    both = [result("node-2", "1x9", "/b"), result("node-2.site", "1x9", "/a")]
    (found,) = findings_of(rule(), both, WINDOW)
    assert (found.nodes, found.devices) == (("node-2.site",), ("/b", "/a"))


def test_hostile_labels_are_bounded_and_escaped() -> None:
    bad = "\x1b[2J{node}" + "x" * 9_000
    (found,) = findings_of(rule(), [result("node-1", "1x9", bad)], WINDOW)
    text = found.sentence + found.evidence[0].text + "".join(found.devices)
    assert text.isprintable()
    assert len(text) < 500
    many = [result("node-1", "1x9", f"/{number}") for number in range(900)]
    (found,) = findings_of(rule(), many, WINDOW)
    assert (len(found.devices), len(found.evidence)) == (64, 12)


RESULTS = [
    result(node, "1x5", device) for node in ("node-1", "node-2.site") for device in ("/a", "/b")
]


@given(st.permutations(RESULTS))
def test_the_order_of_results_changes_nothing(series: list[Series]) -> None:
    assert findings_of(rule(), series, WINDOW) == findings_of(rule(), RESULTS, WINDOW)


TABLES = [
    ({"expr": None}, "lacks expr"),
    ({"exprs": "up"}, "did you mean expr?"),
    ({"kind": "disk"}, "allowed are crash, hang"),
    ({"for": 1.5}, "for: "),
    ({"test": [{"what": "x"}]}, "series"),
]


@pytest.mark.parametrize(("changes", "told"), TABLES)
def test_a_table_of_the_wrong_shape_is_told_of(changes: dict[str, object], told: str) -> None:
    table = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    assert told in "\n".join(problems_of(table))
    assert problems_of(GOOD) == []
    assert problems_of([]) == ["is no table of keys and values"]


CASE = GOOD["test"][0]
LINTS = [
    ({"id": "Site"}, "not kebab-case"),
    ({"family": "disk_ful"}, 'did you mean "disk_full"?'),
    ({"role": "benign"}, "no rule over metrics is benign"),
    ({"why": " "}, "why is empty"),
    ({"node_label": "a-b"}, "no name of a label"),
    ({"below": 1.0}, "both above and below"),
    ({"for": 0}, "at least"),
    ({"for": "soon"}, "is not a span"),
    ({"expr": "sum(up"}, 'does not close its "("'),
    ({"expr": "up]"}, 'closes a "]"'),
    ({"expr": 'up{a="}'}, "opens a quotation"),
    ({"expr": "up\x00"}, "cannot be printed"),
    ({"expr": "u" * 5_000}, "longer than"),
    ({"test": [CASE]}, "one in which it stays silent"),
    ({"test": [{**CASE, "names": []}, CASE]}, "names node-1, and ought to name none"),
    ({"test": [{**GOOD["test"][1], "names": ["node-1"]}, GOOD["test"][1]]}, "names no node"),
    ({"node_label": "host"}, "lacks the label host"),
    ({"sentence": "{rack} is full"}, "no such label"),
    ({"test": [{**CASE, "interval": "often"}, GOOD["test"][1]]}, "is not a span"),
]


@pytest.mark.parametrize(("changes", "told"), LINTS)
def test_what_is_wrong_with_a_rule_is_told(changes: dict[str, object], told: str) -> None:
    assert lint(rule()) == []
    assert told in "\n".join(lint(rule(**changes)))


SIGNATURE = '[[rule]]\nid = "read-elsewhere"\n'


def written(*tables: dict[str, Any], file: Path) -> Path:
    """Write rules as TOML; a JSON string, list or number is TOML too."""
    text = SIGNATURE
    for table in tables:
        text += "\n[[metric_rule]]\n"
        for name, value in table.items():
            if name != "test":
                text += f"{name} = {msgspec.json.encode(value).decode()}\n"
        for case in table["test"]:
            text += "\n[[metric_rule.test]]\n"
            text += f"what = {msgspec.json.encode(case['what']).decode()}\n"
            text += f"names = {msgspec.json.encode(case.get('names', [])).decode()}\n"
            for one in case["series"]:
                text += "[[metric_rule.test.series]]\n"
                text += f'values = "{one["values"]}"\n'
                pairs = (f'{key} = "{value}"' for key, value in one["labels"].items())
                text += f"labels = {{ {', '.join(pairs)} }}\n"
    file.write_text(text)
    return file


def test_a_site_adds_rules_beside_its_signatures(tmp_path: Path) -> None:
    written(GOOD, file=tmp_path / "site.toml")
    assert load_metric_rules([tmp_path])[-1] == rule()
    assert load_metric_rules([tmp_path / "site.toml"])[-1] == rule()


def test_a_rule_with_a_packaged_id_takes_its_place_or_switches_it_off(tmp_path: Path) -> None:
    packaged = load_metric_rules()
    other = {**GOOD, "id": packaged[0].id}
    written(other, file=tmp_path / "site.toml")
    assert rule(id=packaged[0].id) in load_metric_rules([tmp_path])
    written({**other, "status": "retired"}, file=tmp_path / "site.toml")
    assert len(load_metric_rules([tmp_path])) == len(packaged) - 1


FILES = [
    (b"\xff\xfe", "is not UTF-8 text"),
    (b"[[metric_rule]", "site.toml: "),
    (b"metric_rule = 3", "is no list of tables"),
    (b'metric_rule = ["x"]', "is no table of keys and values"),
    (b"#" * (4 * 1024 * 1024 + 1), "is larger than"),
    (b"[[metric_rule]]\nid = 'x'", "lacks expr"),
]


@pytest.mark.parametrize(("content", "told"), FILES)
def test_a_file_that_cannot_be_used_is_told_of(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_bytes(content)
    with pytest.raises(MetricRuleError, match="cannot be used") as refused:
        load_metric_rules([tmp_path])
    assert told in str(refused.value)


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    written({**GOOD, "why": ""}, {**GOOD, "id": "B"}, file=tmp_path / "a.toml")
    written(GOOD, GOOD, file=tmp_path / "b.toml")
    with pytest.raises(MetricRuleError) as refused:
        load_metric_rules([tmp_path, tmp_path / "none"])
    told = "\n".join(refused.value.problems)
    for part in ("why is empty", "not kebab-case", "the id is taken", "is not there"):
        assert part in told


def test_a_type_is_told_in_words_and_a_problem_once(tmp_path: Path) -> None:
    assert problems_of({**GOOD, "above": "high"}) == ["above: is a text; a number is expected"]
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "site.toml").write_text('[[metric_rule]]\nid = "site-a"\nabove = "x"')
    with pytest.raises(MetricRuleError) as refused:
        metric_catalogue([tmp_path / "a", tmp_path / "b"])
    assert len(refused.value.problems) == len(set(refused.value.problems))


def test_the_rule_that_is_shown_passes_the_laws() -> None:
    text = (DOCS / "writing-rules.md").read_text()
    (block,) = re.findall(r"~~~toml\n(.*?)~~~", text, re.DOTALL)
    (table,) = tomllib.loads(block)["metric_rule"]
    assert problems_of(table) == []
    assert lint(metric_rule_from(table)) == []


def test_every_field_is_documented() -> None:
    text = (DOCS / "writing-rules.md").read_text()
    fields = {field.encode_name for field in msgspec.structs.fields(MetricRule)}
    assert sorted(name for name in fields if f"`{name}`" not in text) == []
