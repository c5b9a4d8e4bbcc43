"""Find the file, read it, lay the environment over it, and refuse with every problem at once."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from relight.settings.environment import STATE, overlay
from relight.settings.lines import Lines
from relight.settings.places import PLACES, find
from relight.settings.problems import Problem, SettingsError
from relight.settings.reading import Origins, read
from relight.settings.records import Settings

MOST_BYTES = 262_144
"""A larger file is refused: a thousand opt-ins have a third of it."""

__all__ = ["PLACES", "find", "load"]

_EXAMPLE = 'write one that holds [cluster.main] and kind = "slurm", or name one with --config'
_TOML_PLACE = re.compile(
    r"(?P<what>.*) \(at (?:line (?P<line>\d+), column \d+|end of document)\)", re.DOTALL
)
_MOST_DOTS = 100


def load(
    path: Path | None,
    environ: Mapping[str, str],
    *,
    places: Sequence[Path] = PLACES,
    is_root: bool | None = None,
) -> Settings:
    """Return the settings of one file and the environment.

    The file is ``path``, else the one that RELIGHT_CONFIG names, else the first of ``places``
    that exists. Without one, variables that describe a cluster are enough. ``is_root`` picks
    the state folder that stands in for ``store.path``; None asks the system.

    Raises:
        SettingsError: there is no file, or something is wrong; it holds every problem.

    """
    file = find(path, environ, places)
    text = "" if file is None else _text(file)
    tables = _parsed(text, str(file))
    variables, problems = overlay(tables, environ)
    if file is None and "cluster" not in tables:
        looked = ", ".join(str(place) for place in places)
        problems.insert(0, Problem(what=f"there is no settings file at {looked}", cure=_EXAMPLE))
        raise SettingsError(tuple(problems))
    origins = Origins(str(file or "the environment"), Lines(text), variables)
    root = os.geteuid() == 0 if is_root is None else is_root
    settings = read(tables, origins, _state_folder(environ, is_root=root))
    if isinstance(settings, Settings) and not problems:
        return settings
    found = [] if isinstance(settings, Settings) else settings
    raise SettingsError((*problems, *sorted(found, key=lambda problem: problem.line or 0)))


def _text(file: Path) -> str:
    try:
        data = _bytes(file)
    except OSError as error:
        why = error.strerror or str(error)
        raise _alone(file, f"cannot be read: {why}", _EXAMPLE) from error
    except ValueError as error:
        raise _alone(file, f"cannot be read: {error}", _EXAMPLE) from error
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _alone(file, "is not UTF-8", "save it as UTF-8", line) from error


def _bytes(file: Path) -> bytes:
    """Read a regular file, and nothing that could block or never end.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is too large, no regular file, or has a name that no file can have.

    """
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        data = opened.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    return data


def _parsed(text: str, file: str) -> dict[str, object]:
    for line, content in enumerate(text.split("\n"), start=1):
        # tomllib keeps every prefix of a dotted key: a long one would take all memory
        if content.count(".") > _MOST_DOTS and not content.lstrip().startswith("#"):
            raise _alone(file, f"has more than {_MOST_DOTS} dots here", "split this line", line)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _TOML_PLACE.fullmatch(str(error))
        what = match["what"] if match else str(error)
        line = int(match["line"]) if match and match["line"] else text.count("\n") + 1
        raise _alone(file, f"is not TOML: {what}", "correct this line first", line) from error
    except RecursionError as error:
        raise _alone(file, "is nested too deeply", "no key here holds nested lists") from error
    except ValueError as error:
        raise _alone(file, f"holds a value that cannot be read: {error}", "shorten it") from error


def _state_folder(environ: Mapping[str, str], *, is_root: bool) -> str:
    if environ.get(STATE):
        return str(Path(environ[STATE]).absolute())
    return "/var/lib/relight" if is_root else str(Path("relight-state").absolute())


def _alone(file: Path | str, what: str, cure: str, line: int | None = None) -> SettingsError:
    """Return the error for a file whose keys cannot even be looked at."""
    return SettingsError((Problem(source=str(file), line=line, what=what, cure=cure),))
