from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from relight.model.findings import Remedy
from relight.rules.linting import lint, shadowed
from relight.rules.loading import RuleError, catalogue, load
from relight.rules.schema import Rule, problems_of, rule_from

GOOD = {
    "id": "site-thing",
    "family": "node_failure",
    "kind": "node",
    "role": "root",
    "domain": "hardware",
    "remedy": "restart_excluding_node",
    "title": "A thing of this site",
    "sentence": "The thing on {node} broke.",
    "patterns": [r"thing on (?P<node>\w{1,20}) broke"],
    "evidence": "the site's own runbook",
    "why": "The thing is part of the machine.",
    "hits": ["thing on node7 broke", "the thing on node8 broke at noon"],
    "misses": [{"text": "thing on node7 works", "why": "it works"}],
}
AS_TOML = """
[[rule]]
id = "site-thing"
family = "node_failure"
kind = "node"
role = "root"
domain = "hardware"
remedy = "restart_excluding_node"
title = "A thing of this site"
sentence = "The thing on {node} broke."
patterns = ['thing on (?P<node>\\w{1,20}) broke']
evidence = "the site's own runbook"
why = "The thing is part of the machine."
hits = ["thing on node7 broke", "the thing on node8 broke at noon"]
misses = [{ text = "thing on node7 works", why = "it works" }]
"""


def rule_with(**changes: object) -> Rule:
    return rule_from({**GOOD, **changes})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"id": "Site Thing"}, "kebab-case"),
        ({"family": "gremlins"}, "unknown"),
        ({"title": " "}, "title is empty"),
        ({"why": ""}, "why is empty"),
        ({"patterns": [r"on (?P<node>\w{1,20})"], "hits": ["on node7", "on x"]}, "no literal"),
        ({"ending": "finished"}, 'its kind is "ending"'),
        ({"role": "benign", "kind": "ending", "ending": "finished"}, "benign line"),
        ({"known_misses": [{"text": "thing on x broke", "why": "old"}]}, "make it a hit"),
        ({"known_misses": [{"text": "thing", "why": ""}]}, "lacks its why"),
        ({"sentence": "{gpu} broke"}, "{gpu}"),
        ({"patterns": []}, "no pattern"),
        ({"patterns": ["thing on (?!x)node7 broke"]}, "RE2 refuses"),
        ({"patterns": [r"(thing) on \w{1,20} broke \1"]}, "RE2 refuses"),
        ({"patterns": ["(?:thing)?"]}, "empty line"),
        ({"patterns": ["thing on .*"]}, "unbounded"),
        ({"patterns": ["thing on (?P<node>.+)$"]}, "unbounded"),
        ({"patterns": [r"\Athing on (?P<node>\w{1,9}) broke"]}, "use ^"),
        ({"patterns": ["(?s)thing on (?P<node>node7) broke"]}, "one line"),
        ({"patterns": ["thing \u00fcber (?P<node>node7) broke"]}, "ASCII"),
        ({"hits": ["thing on node7 broke"]}, "at least 2 hits"),
        ({"hits": ["thing on node7 broke", "all is well"]}, "its own hit"),
        ({"misses": []}, "1 miss"),
        ({"misses": [{"text": "thing on x broke", "why": "no"}]}, "its own miss"),
        ({"misses": [{"text": "well", "why": " "}]}, "lacks its why"),
    ],
)
def test_a_rule_with_a_fault_is_told_so(changes: dict[str, object], complaint: str) -> None:
    assert any(complaint in problem for problem in lint(rule_with(**changes)))


def test_a_good_rule_has_no_problems() -> None:
    assert lint(rule_with()) == []


def test_a_line_that_unless_matches_is_passed_over() -> None:
    misses = [{"text": "warning: thing on node7 broke", "why": "a warning"}]
    assert lint(rule_with(unless=["^warning"], misses=misses)) == []


def test_rules_of_a_directory_are_added_to_the_packaged_ones(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(AS_TOML)
    assert load([tmp_path])[:-1] == load()
    assert load([tmp_path])[-1].id == "site-thing"


def test_every_problem_is_told_at_once_with_its_file_and_rule(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(AS_TOML.replace("title =", "titel ="))
    (tmp_path / "b.toml").write_text(AS_TOML.replace("site-thing", "disk-full"))
    (tmp_path / "c.toml").write_text("this is no TOML")
    (tmp_path / "d.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "e.toml").write_text(AS_TOML.replace('"root"', '"culprit"'))
    (tmp_path / "f.toml").write_text("other = 1")
    (tmp_path / "g.toml").mkdir()
    with pytest.raises(RuleError) as caught:
        load([tmp_path, tmp_path / "absent"])
    told = "\n".join(caught.value.problems)
    for expected in (
        "a.toml: rule site-thing",
        "b.toml: rule disk-full",
        "c.toml",
        "d.toml",
        "e.toml: rule site-thing",
        "f.toml",
        "g.toml",
        "absent",
    ):
        assert expected in told


def test_a_site_changes_one_field_of_a_packaged_rule_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text('[[override]]\nid = "disk-full"\nremedy = "hold"\n')
    changed = {entry.rule.id: entry for entry in catalogue([tmp_path])}
    packaged = {entry.rule.id: entry for entry in catalogue()}
    entry = changed.pop("disk-full")
    assert entry.rule == msgspec.structs.replace(packaged.pop("disk-full").rule, remedy=Remedy.HOLD)
    assert entry.changed == {"remedy": str(tmp_path / "ours.toml")}
    assert changed == packaged


def test_a_retired_rule_is_not_heard_but_keeps_its_id(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text('[[override]]\nid = "disk-full"\nstatus = "retired"\n')
    (tmp_path / "z.toml").write_text(AS_TOML.replace("site-thing", "disk-full"))
    with pytest.raises(RuleError, match="the id is taken"):
        load([tmp_path])
    (tmp_path / "z.toml").unlink()
    assert "disk-full" not in {rule.id for rule in load([tmp_path])}
    assert "disk-full" in {entry.rule.id for entry in catalogue([tmp_path])}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[override]]\nremedy = "hold"\n', "must name the id"),
        ('[[override]]\nid = "disk-empty"\nremedy = "hold"\n', "no such rule"),
        ('[[override]]\nid = "disk-full"\nremedy = "pray"\n', "remedy"),
        ('[[override]]\nid = "disk-full"\npattern = ["x"]\n', "pattern"),
        ('[[override]]\nid = "disk-full"\npatterns = ["No room at all"]\n', "its own hit"),
        ("[override]\nid = 1\n", "something else than"),
    ],
)
def test_an_override_with_a_fault_is_told_so(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "ours.toml").write_text(text)
    with pytest.raises(RuleError) as caught:
        load([tmp_path])
    assert complaint in "\n".join(caught.value.problems)


def test_one_file_of_rules_can_be_named_alone(tmp_path: Path) -> None:
    (tmp_path / "site.toml").write_text(AS_TOML)
    assert load([tmp_path / "site.toml"])[-1].id == "site-thing"


@pytest.mark.parametrize(
    ("other", "is_needless"),
    [
        ({"patterns": [r"thing on \w{1,20}"], "misses": []}, True),
        ({"patterns": [r"thing on node7"]}, False),
        ({"patterns": [r"thing on \w{1,20}"], "role": "symptom"}, False),
        ({"patterns": [r"thing on \w{1,20}"], "family": "gpu_unavailable"}, False),
        ({"patterns": [r"thing on \w{1,20}"], "role": "benign"}, True),
        ({"patterns": [r"thing on \w{1,20}"], "status": "retired"}, False),
    ],
)
def test_a_rule_that_another_makes_needless_is_told_so(
    other: dict[str, object],
    is_needless: bool,  # noqa: FBT001 - a column of the table
) -> None:
    rule = rule_with()
    told = shadowed(rule, [rule, rule_with(id="other", **other)])
    assert ("shadowed by other" in told) == is_needless


def test_every_fault_of_the_shape_is_told_with_what_is_allowed() -> None:
    table = {**GOOD, "domain": "system", "patern": ["x"], "hits": "one"}
    del table["title"], table["why"]
    told = "\n".join(problems_of(table))
    for expected in ("lacks title", "system_software", "did you mean patterns?", "hits: "):
        assert expected in told
    assert problems_of(GOOD) == []
    assert problems_of([]) == ["is no table of keys and values"]
