from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from relight.model.records import Record
from relight.policy.opt_in import APS_KEYS, COMMENT_KEYS
from relight.policy.policies import OptIn, Policy
from relight.settings.explaining import markdown, matching, nearest
from relight.settings.keys import KEYS, SECTIONS, Key, of_section
from relight.settings.loading import load
from relight.settings.records import (
    Attribution,
    Cluster,
    RuleSets,
    Serve,
    Store,
    Telemetry,
)

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
RECORDS: dict[str, type[Record]] = {
    "cluster": Cluster,
    "opt_in": OptIn,
    "policy": Policy,
    "store": Store,
    "serve": Serve,
    "rules": RuleSets,
    "telemetry": Telemetry,
    "attribution": Attribution,
}
WITH_A_DEFAULT = [key for key in KEYS if key.default[0] in '"[0123456789']


@pytest.mark.parametrize("section", SECTIONS)
def test_every_field_of_a_record_is_a_key_and_every_key_a_field(section: str) -> None:
    fields = {field.name for field in msgspec.structs.fields(RECORDS[section])}
    named = {"name"} if section in ("cluster", "policy", "telemetry", "attribution") else set()
    assert set(of_section(section)) == fields - named


@pytest.mark.parametrize("key", WITH_A_DEFAULT, ids=lambda key: key.pattern)
def test_the_default_in_the_table_is_the_default_of_the_record(key: Key) -> None:
    said = key.shape.read(tomllib.loads(f"default = {key.default}")["default"])
    fields = {field.name: field for field in msgspec.structs.fields(RECORDS[key.section])}
    held = "default" if key.pattern == "opt_in.policy" else fields[key.leaf].default
    assert msgspec.to_builtins(held) in (said, list(said) if isinstance(said, tuple) else said)


def test_a_default_is_a_value_or_says_in_words_what_holds_without_it() -> None:
    others = [key for key in KEYS if key not in WITH_A_DEFAULT]
    assert all(key.default.startswith(("none: ", "required", "$RELIGHT")) for key in others)
    assert all(key.meaning.endswith(".") and key.precedent.endswith(".") for key in KEYS)


def test_the_page_holds_every_key_as_the_table_tells_it() -> None:
    assert markdown() in PAGE, "run: relight config explain --markdown"


def test_the_page_names_no_key_that_does_not_exist() -> None:
    named = set(re.findall(r"`((?:cluster|opt_in|policy|store|serve)\.[A-Za-z_.-]+)`", PAGE))
    assert named
    assert [name for name in named if not matching(name)] == []


@pytest.mark.parametrize(
    "key", [*(f"relight.{key}" for key in COMMENT_KEYS), *(f"APS.{key}" for key in APS_KEYS)]
)
def test_the_page_holds_every_key_of_a_comment(key: str) -> None:
    assert f"| `{key}` |" in PAGE


def test_the_page_names_no_variable_that_does_not_exist(tmp_path: Path) -> None:
    file = tmp_path / "relight.toml"
    file.write_text('[cluster.main]\nkind = "local"\n')
    for line in re.findall(r"^export (RELIGHT_\w+=.*)$", PAGE, re.MULTILINE):
        name, _, value = line.partition("=")
        settings = load(file, {name: str(file) if name == "RELIGHT_CONFIG" else value})
        assert settings.origin == str(file)


def test_every_settings_file_on_the_page_loads(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    for block in blocks:
        file = tmp_path / "relight.toml"
        file.write_text(block)
        assert load(file, {}).clusters


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("policy.default.mode", ["policy.NAME.mode"]),
        ("policy.NAME.mode", ["policy.NAME.mode"]),
        ("opt_in[2].user", ["opt_in.user"]),
        ("serve", ["serve.host", "serve.port"]),
        ("mode", ["cluster.NAME.mode", "policy.NAME.mode"]),
        ("policy.default", [key.pattern for key in KEYS if key.section == "policy"]),
        ("serve.prot", []),
        ("", []),
    ],
)
def test_a_key_is_found_however_a_person_names_it(asked: str, found: list[str]) -> None:
    assert [key.pattern for key in matching(asked)] == found


@pytest.mark.parametrize(
    ("asked", "guess"),
    [
        ("serve.prot", "serve.port"),
        ("policy.default.max_restart", "policy.NAME.max_restarts"),
        ("setle", "settle"),
        ("qqqq", ""),
    ],
)
def test_a_misspelt_key_is_answered_with_the_nearest(asked: str, guess: str) -> None:
    assert nearest(asked) == guess
