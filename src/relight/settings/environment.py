"""Environment variables laid over the file: ``RELIGHT_SERVE__PORT`` sets ``serve.port``.

Two underscores stand between the parts. Names of clusters and policies are found without
regard to case, and a dash or dot in one is written as an underscore, because a variable's
name can hold neither.
"""

from __future__ import annotations

from collections.abc import Mapping

from relight.policy.opt_in import did_you_mean
from relight.settings.keys import KEYS, SECTIONS, Key, of_section
from relight.settings.lines import Path
from relight.settings.places import CONFIG
from relight.settings.problems import Problem

PREFIX = "RELIGHT_"
STATE = "RELIGHT_STATE"
_VARIABLES = tuple(key.variable for key in KEYS if key.variable)


def overlay(
    tables: dict[str, object], environ: Mapping[str, str]
) -> tuple[dict[Path, str], list[Problem]]:
    """Write the overrides into ``tables``; return which variable set which key, and problems.

    Variables without two underscores belong to other parts of relight and are left alone,
    unless they begin with a section's name, which is a misspelling.
    """
    origins: dict[Path, str] = {}
    problems: list[Problem] = []
    for variable in sorted(environ):
        if not _is_override(variable):
            continue
        parts = variable.removeprefix(PREFIX).lower().split("__")
        key = _key(parts)
        path = _path(parts, tables) if key else ()
        if key is None or not path:
            problems.append(_refused(variable, parts))
        elif _set(tables, path, key.shape.from_text(environ[variable])):
            origins[path] = variable
    return origins, problems


def _is_override(variable: str) -> bool:
    if not variable.startswith(PREFIX) or variable in (CONFIG, STATE):
        return False
    rest = variable.removeprefix(PREFIX)
    return "__" in rest or rest.lower().startswith(tuple(f"{name}_" for name in SECTIONS))


def _key(parts: list[str]) -> Key | None:
    key = of_section(parts[0]).get(parts[-1])
    if key is None or not key.variable or len(parts) != key.pattern.count(".") + 1:
        return None
    return key


def _path(parts: list[str], tables: Mapping[str, object]) -> Path:
    """Return the way to the value, empty when two names of the file fit equally well."""
    section, *names, leaf = parts
    if not names:
        return (section, leaf)
    known = tables.get(section)
    fitting = [one for one in known if _plain(one) == names[0]] if isinstance(known, dict) else []
    if len(fitting) > 1 or not names[0]:
        return ()
    return (section, fitting[0] if fitting else names[0], leaf)


def _set(tables: dict[str, object], path: Path, value: object) -> bool:
    """Set one value; leave a file alone whose tables are none, for that is told anyway."""
    here: object = tables
    for part in path[:-1]:
        if not isinstance(here, dict):
            return False
        here = here.setdefault(part, {})
    if not isinstance(here, dict):
        return False
    here[path[-1]] = value
    return True


def _refused(variable: str, parts: list[str]) -> Problem:
    if parts[0] == "opt_in":
        return Problem(
            source=variable,
            what="opt-ins cannot be set by environment variables",
            cure="write [[opt_in]] in the file",
        )
    guess = did_you_mean(variable, _VARIABLES)
    return Problem(
        source=variable,
        what="sets no key, or fits several names of the file",
        cure=f"did you mean {guess}?" if guess else "write RELIGHT_SECTION__KEY",
    )


def _plain(name: str) -> str:
    return name.lower().replace("-", "_").replace(".", "_")
