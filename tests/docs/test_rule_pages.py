"""The pages of the rules are what the rules say, and the page on writing rules is true."""

from __future__ import annotations

import re
from pathlib import Path

from relight.rules.books import book
from relight.rules.causes import load_causes
from relight.rules.loading import catalogue, load
from relight.rules.metrics.loading import metric_catalogue

DOCS = Path(__file__).parents[2] / "docs"


def test_each_rule_has_its_page_and_each_page_its_rule() -> None:
    expected = book(catalogue(), metric_catalogue(), load_causes())
    written = {path.name: path.read_text() for path in (DOCS / "rules").glob("*.md")}
    differing = sorted(
        name for name in written.keys() | expected.keys() if written.get(name) != expected.get(name)
    )
    assert differing == [], "run make rules-pages"


def test_the_rules_that_are_shown_pass_the_laws(tmp_path: Path) -> None:
    text = (DOCS / "writing-rules.md").read_text()
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "shown.toml").write_text(block)
    assert load([tmp_path])[-1].id == "site-pump-stopped"
