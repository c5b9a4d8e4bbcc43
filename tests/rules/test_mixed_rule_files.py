"""A site's file may hold signatures and rules over metrics side by side."""

from __future__ import annotations

import re
from pathlib import Path

from relight.rules.loading import catalogue
from relight.rules.metrics import load_metric_rules

DOCS = Path(__file__).parents[2] / "docs"


def test_each_loader_reads_its_own_tables(tmp_path: Path) -> None:
    text = (DOCS / "writing-rules.md").read_text()
    (signatures,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (metrics,) = re.findall(r"~~~toml\n(.*?)~~~", text, re.DOTALL)
    (tmp_path / "site.toml").write_text(signatures + metrics)
    assert catalogue([tmp_path])[-1].rule.id == "site-pump-stopped"
    assert load_metric_rules([tmp_path])[-1].id == "site-scratch-full"
    (tmp_path / "site.toml").write_text(metrics)
    assert load_metric_rules([tmp_path])[-1].id == "site-scratch-full"
