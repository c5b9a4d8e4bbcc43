from __future__ import annotations

from pathlib import Path

import pytest

from relight.rules.linting import lint
from relight.rules.loading import RuleError, load
from relight.rules.schema import Rule, rule_from

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
