from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import typer

from relight.cli import app
from relight.cli.failures import FAILED, NOT_FOUND, UNREACHABLE
from relight.daemon.stop_signals import CUT_OFF
from relight.serve.apps import create_app
from relight.serve.tokens import Token
from relight.settings.loading import load
from relight.settings.records import Settings

if TYPE_CHECKING:
    from relight.serve.ports import Ports

ROOT = Path(__file__).parents[2]
HARMLESS = ("config check", "config explain", "--version", "--help")
"""Commands whose shown output is compared with what they print."""
CUT = "[...]"
CHECKED_ELSEWHERE = ("docs/configuration.md", "docs/writing-rules.md")
"""Pages whose own tests check their blocks."""

_FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_TEST = re.compile(r"test_\w+")
_FILE = re.compile(r"[\w./-]+/[\w.-]+\.(?:py|toml|md|lock)")


@dataclass(frozen=True)
class Page:
    """One page of the documentation."""

    path: Path
    text: str

    @property
    def prose(self) -> str:
        """Return the text without its fenced blocks."""
        return _FENCE.sub("", self.text)

    def blocks(self, *kinds: str) -> list[str]:
        """Return the fenced blocks of these kinds."""
        return [found["text"] for found in _FENCE.finditer(self.text) if found["kind"] in kinds]

    def spans(self) -> list[str]:
        """Return what stands in backquotes outside of blocks."""
        return _SPAN.findall(self.prose)

    def rows(self, *head: str) -> list[tuple[str, ...]]:
        """Return the rows of the table whose header begins with ``head``."""
        lines = iter(self.prose.splitlines())
        for line in lines:
            if _cells(line)[: len(head)] == head:
                next(lines)
                break
        table: list[tuple[str, ...]] = []
        for line in lines:
            if not line.startswith("|"):
                break
            table.append(_cells(line))
        return table


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().removeprefix("|").split("|"))


def page(name: str) -> Page:
    return Page(path=ROOT / name, text=(ROOT / name).read_text())


NAMES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"))
    if path.parent.name != "rules"  # generated, and compared in tests/docs/test_rule_pages.py
)
GROUPS = {
    "config": ("check", "explain"),
    "db": ("upgrade", "show"),
    "rules": ("list", "show", "explain", "check", "test", "pages"),
}
"""Commands that have commands of their own."""
SHOWN = [
    line.removeprefix("$ ")
    for name in NAMES
    for block in page(name).blocks("sh", "console", "text")
    for line in block.splitlines()
    if re.match(r"(\$ )?(RELIGHT_\w+=\S+ )?(relight|make) [^:]*$", line)
]
"""Every command line that stands in a block."""


@pytest.mark.parametrize("line", dict.fromkeys(SHOWN))
def test_a_command_that_is_shown_can_be_called_that_way(line: str) -> None:
    words = [word for word in shlex.split(line, comments=True) if not word.startswith("RELIGHT_")]
    if words[0] == "make":
        assert set(words[1:]) <= _targets()
    else:
        _parse(words[1:])


@pytest.mark.parametrize("name", NAMES)
def test_a_command_that_is_named_in_passing_exists(name: str) -> None:
    for span in page(name).spans():
        words = span.partition("…")[0].split()
        match words:
            case ["make", *targets] if targets:
                assert set(targets) <= _targets(), span
            case ["relight", *rest] if rest and not rest[0].startswith("-"):
                options = _options(rest)
                assert {word for word in rest if word.startswith("--")} <= {*options, "--"}, span
            case _:
                pass


def _targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _leaf(words: list[str]) -> tuple[typer.core.TyperCommand, list[str]]:
    """Return the command that words call, built by the real command line, and its arguments."""
    assert words[0] in app.COMMANDS, f"relight {words[0]} is no command"
    group = typer.main.get_command(app.build([words[0]]))
    assert isinstance(group, typer.core.TyperGroup)
    found, rest = group.commands[words[0]], words[1:]
    if isinstance(found, typer.core.TyperGroup):
        found, rest = found.commands[rest[0]], rest[1:]
    assert isinstance(found, typer.core.TyperCommand)
    return found, rest


def _parse(words: list[str]) -> None:
    """Parse a command line as far as its command; raises for what the command does not take."""
    if words[0].startswith("-"):
        assert app.run(words) == 0
        return
    command, rest = _leaf(words)
    with command.make_context(words[0], list(rest)):
        pass


def _options(words: list[str]) -> set[str]:
    if words[0] in GROUPS and len(words) == 1:
        return set()
    command, _ = _leaf(words)
    names = {name for one in command.params if one.name != "help" for name in one.opts}
    return {name for name in names if name.startswith("--")}


def test_every_command_is_documented_with_its_line_and_its_options() -> None:
    table = {cells[0]: cells for cells in page("docs/cli.md").rows("Command")}
    documented = {first.split("`")[1].removeprefix("relight "): row for first, row in table.items()}
    expected = {name for name in app.COMMANDS if name not in GROUPS}
    expected |= {f"{group} {name}" for group, names in GROUPS.items() for name in names}
    assert set(documented) == expected
    for command, row in documented.items():
        assert set(_SPAN.findall(row[2])) == _options(command.split()), command
        assert row[1] == app.COMMANDS.get(command, row[1])


def test_every_exit_code_is_documented() -> None:
    codes = [int(cells[0]) for cells in page("docs/cli.md").rows("Code")]
    assert codes == [0, FAILED, 2, NOT_FOUND, UNREACHABLE, CUT_OFF]
    assert re.findall(r"\d", app.EPILOG) == [str(code) for code in codes]


def test_every_route_is_documented_with_its_summary_and_its_parameters() -> None:
    # The description is made without a store or a daemon: no handler is called.
    token = Token(value="", path="")
    described_app = create_app(cast("Ports", None), token, controllers=True)
    paths = described_app.openapi_schema.to_schema()["paths"]
    described = {
        (method.upper(), path): (
            operation["summary"],
            {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"},
        )
        for path, methods in paths.items()
        for method, operation in methods.items()
    }
    documented = {
        (cells[0], cells[1].strip("`")): (cells[2], set(_SPAN.findall(cells[3])))
        for cells in page("docs/http.md").rows("Method")
    }
    assert documented == described


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CHECKED_ELSEWHERE])
def test_settings_that_are_shown_load(name: str, tmp_path: Path) -> None:
    for block in page(name).blocks("toml"):
        file = tmp_path / "relight.toml"
        file.write_text(block)
        assert isinstance(load(file, {}), Settings)
        assert tomllib.loads(block)


def test_the_comments_that_are_shown_opt_in() -> None:
    found = re.findall(r"--comment='(.*)'", page("README.md").text)
    assert found
    assert all("relight" in json.loads(comment) for comment in found)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_of_a_harmless_command_is_what_it_prints(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = page("README.md").blocks("toml")[0]
    (tmp_path / "relight.toml").write_text(first)
    monkeypatch.chdir(tmp_path)
    for block in page(name).blocks("console"):
        head, *shown = block.splitlines()
        words = head.removeprefix("$ relight ")
        assert words.startswith(HARMLESS), f"{words}: show it in a block of kind text"
        assert app.run(shlex.split(words)) == 0
        printed = capsys.readouterr().out.splitlines()
        assert [line for line in shown if line != CUT and line not in printed] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_to_something(name: str) -> None:
    here = page(name)
    targets = [target for target in _LINK.findall(here.prose) if not target.startswith("http")]
    missing = [
        target for target in targets if not (here.path.parent / target.partition("#")[0]).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("name", NAMES)
def test_every_file_and_test_that_is_named_exists(name: str) -> None:
    tests = _test_names()
    for span in page(name).spans():
        if _TEST.fullmatch(span):
            assert span in tests, f"there is no test {span}"
        elif _FILE.fullmatch(span) and not span.startswith("/"):
            places = (ROOT / span, ROOT / "src/relight" / span)
            assert any(place.exists() for place in places), f"there is no file {span}"


def _test_names() -> set[str]:
    return {
        node.name
        for file in (ROOT / "tests").glob("**/test_*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef)
    }


def test_every_room_is_on_the_map() -> None:
    rooms = {one.name for one in (ROOT / "src/relight").iterdir() if (one / "__init__.py").exists()}
    documented = {
        cells[0].strip("`/") for cells in page("docs/architecture.md").rows("Room", "Holds")
    }
    assert documented == rooms


def test_decisions_are_numbered_without_gaps_and_dated() -> None:
    files = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert [file.name[:4] for file in files] == [f"{n:04d}" for n in range(1, len(files) + 1)]
    for file in files:
        text = file.read_text()
        assert text.startswith(f"# {int(file.name[:4])}. ")
        assert re.search(r"^Date: \d{4}-\d{2}-\d{2}$", text, re.MULTILINE)
        parts = re.findall(r"^## (.*)$", text, re.MULTILINE)
        assert parts == ["Context", "Decision", "Consequences"]
