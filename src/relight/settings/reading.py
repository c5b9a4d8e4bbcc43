"""From TOML's tables to the typed record, gathering every problem on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from relight.policy.opt_in import DEFAULT_POLICY, did_you_mean, quoted
from relight.policy.policies import OptIn, Policy
from relight.settings.keys import NAME, NAME_WORDS, SECTIONS, Key, of_section
from relight.settings.lines import Lines, Path
from relight.settings.problems import Problem
from relight.settings.records import (
    Attribution,
    Cluster,
    RuleSets,
    Serve,
    Settings,
    Store,
    Telemetry,
)
from relight.settings.shapes import RefusedError

_MOST_NAMED = 20


class Origins:
    """Where each value came from: a line of the file, or an environment variable."""

    def __init__(self, source: str, lines: Lines, variables: Mapping[Path, str]) -> None:
        self.source = source
        self._lines = lines
        self._variables = variables

    def problem(self, path: Path, what: str, cure: str) -> Problem:
        """Return a problem with the value at ``path``."""
        variable = self._variables.get(path)
        return Problem(
            path=_written(path),
            source=variable or self.source,
            line=None if variable else self._lines.of(path),
            what=what,
            cure=cure,
        )


def read(tables: Mapping[str, object], origins: Origins, state: str) -> Settings | list[Problem]:
    """Return the settings that the tables spell, or all that is wrong with them.

    ``state`` is the folder that stands in for a ``store.path`` that is not written.
    """
    reading = _Reading(tables, origins)
    clusters = reading.named("cluster")
    policies = reading.named("policy")
    telemetry = reading.named("telemetry")
    attribution = reading.named("attribution")
    reading.names_of_clusters(clusters, telemetry, attribution)
    opt_ins = reading.opt_ins(clusters, policies)
    store = {"path": state, **reading.single("store")}
    serve = reading.single("serve")
    rules = reading.single("rules")
    if not clusters:
        reading.refuse(("cluster",), "is missing", "write [cluster.main] with a kind")
    if reading.problems:
        return reading.problems
    policies = policies if DEFAULT_POLICY in policies else {DEFAULT_POLICY: {}, **policies}
    return Settings(
        clusters=msgspec.convert(_with_names(clusters), tuple[Cluster, ...]),
        policies=msgspec.convert(_with_names(policies), tuple[Policy, ...]),
        opt_ins=msgspec.convert(opt_ins, tuple[OptIn, ...]),
        store=msgspec.convert(store, Store),
        serve=msgspec.convert(serve, Serve),
        rules=msgspec.convert(rules, RuleSets),
        telemetry=msgspec.convert(_with_names(telemetry), tuple[Telemetry, ...]),
        attribution=msgspec.convert(_with_names(attribution), tuple[Attribution, ...]),
        origin=origins.source,
    )


Fields = dict[str, object]


class _Reading:
    """One pass over the tables; what is wrong is gathered and the pass goes on."""

    def __init__(self, tables: Mapping[str, object], origins: Origins) -> None:
        self._tables = tables
        self._origins = origins
        self.problems: list[Problem] = []
        for section in tables:
            if section not in SECTIONS:
                self.refuse((section,), "is not a section", _hint(section, SECTIONS))

    def refuse(self, path: Path, what: str, cure: str) -> None:
        """Gather one problem."""
        self.problems.append(self._origins.problem(path, what, cure))

    def named(self, section: str) -> dict[str, Fields]:
        """Read the tables ``[section.NAME]``, by name, the broken ones included."""
        read: dict[str, Fields] = {}
        for name, values in self._table((section,), self._tables.get(section, {})).items():
            if re.fullmatch(NAME, name) is None:
                self.refuse((section, name), "is not a name", f"use {NAME_WORDS}")
            read[name] = self._fields((section, name), values)
        return read

    def single(self, section: str) -> Fields:
        """Read the one table ``[section]``."""
        return self._fields((section,), self._tables.get(section, {}))

    def opt_ins(self, clusters: Iterable[str], policies: Iterable[str]) -> list[Fields]:
        """Read the array ``[[opt_in]]``; what it names must exist."""
        entries = self._tables.get("opt_in", [])
        if not isinstance(entries, list):
            self.refuse(("opt_in",), "is not a list of tables", "write [[opt_in]] above each")
            return []
        read = []
        for number, entry in enumerate(entries):
            path: Path = ("opt_in", number)
            fields = {"policy": DEFAULT_POLICY, **self._fields(path, entry)}
            self._exists((*path, "cluster"), fields.get("cluster"), tuple(clusters))
            self._exists((*path, "policy"), fields["policy"], (*policies, DEFAULT_POLICY))
            read.append(fields)
        return read

    def names_of_clusters(
        self,
        clusters: Mapping[str, Fields],
        telemetry: Iterable[str],
        attribution: Iterable[str],
    ) -> None:
        """Refuse what a cluster names that is not there."""
        for name, fields in clusters.items():
            asked = fields.get("telemetry")
            self._exists(("cluster", name, "telemetry"), asked, tuple(telemetry))
            named = fields.get("attribution", ())
            for one in named if isinstance(named, tuple) else ():
                self._exists(("cluster", name, "attribution"), one, tuple(attribution))

    def _exists(self, path: Path, name: object, known: tuple[str, ...]) -> None:
        if isinstance(name, str) and name not in known:
            what = f"names {quoted(name)}, which is not there"
            self.refuse(path, what, _hint(name, known))

    def _fields(self, path: Path, values: object) -> Fields:
        keys = of_section(str(path[0]))
        table = self._table(path, values)
        read: Fields = {}
        for name, raw in table.items():
            if name not in keys:
                self.refuse((*path, name), "is not a key", _hint(name, keys))
                continue
            try:
                read[name] = keys[name].shape.read(raw)
            except RefusedError as error:
                self.refuse((*path, name), str(error), f"allowed is {keys[name].shape.allowed}")
        self._require(path, table, keys, is_table=isinstance(values, dict))
        return read

    def _require(
        self, path: Path, table: Mapping[str, object], keys: Mapping[str, Key], *, is_table: bool
    ) -> None:
        for key in keys.values():
            if is_table and key.required and key.leaf not in table:
                self.refuse((*path, key.leaf), "is missing", f"allowed is {key.shape.allowed}")

    def _table(self, path: Path, values: object) -> Mapping[str, object]:
        if isinstance(values, dict):
            return values
        self.refuse(path, "is not a table", f"write [{_written(path)}] and its keys below")
        return {}


def _with_names(tables: Mapping[str, Fields]) -> list[Fields]:
    return [{"name": name, **fields} for name, fields in tables.items()]


def _hint(word: str, known: Iterable[str]) -> str:
    known = tuple(dict.fromkeys(known))
    guess = did_you_mean(word, known)
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    names = (", ".join(known[:_MOST_NAMED]) or "none") + more
    return f'did you mean "{guess}"?' if guess else f"known are {names}"


def _written(path: Path) -> str:
    """Return a path as a person writes it: ``policy.default.mode``, ``opt_in[1].cluster``."""
    text = ""
    for part in path:
        match part:
            case int():
                text += f"[{part + 1}]"
            case str():
                name = part if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", part) else quoted(part)
                text += f".{name}" if text else name
    return text
