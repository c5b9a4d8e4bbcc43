"""The pages of the rules are what the rules say, and the page on writing rules is true."""

from __future__ import annotations

import re
from pathlib import Path

from relight.rules.loading import catalogue, load
from relight.rules.pages import index, page
from relight.rules.schema import Status

DOCS = Path(__file__).parents[2] / "docs"


def test_each_rule_has_its_page_and_each_page_its_rule() -> None:
    entries = catalogue()
    expected = {f"{entry.rule.id}.md": page(entry) for entry in entries}
    expected["README.md"] = index(
        entry for entry in entries if entry.rule.status is not Status.RETIRED
    )
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
