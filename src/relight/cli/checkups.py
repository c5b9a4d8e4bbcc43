"""What ``relight doctor`` looks at: each check is how something is, and what to do about it.

Everything here only looks. A check that cannot look says so; it never says that all is well.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from relight.clients.exchanges import Limits, NoAnswer, TooLarge, exchange
from relight.clients.schedulers import Eyes
from relight.daemon.parts import parts_of
from relight.model.instants import Instant, in_seconds
from relight.model.records import Record
from relight.model.seen import Unseen
from relight.rules.loading import RuleError, load
from relight.rules.metrics import MetricRule, MetricRuleError, load_metric_rules
from relight.settings.problems import SettingsError
from relight.settings.records import Attribution, Cluster, Settings
from relight.sources.kernel_logs.names import names_of
from relight.sources.kernel_logs.reading import is_timeless
from relight.sources.kernel_logs.zones import local_zone
from relight.sources.telemetry import Survey, TelemetrySource
from relight.sources.telemetry.surveys import as_sentence, shown
from relight.store import Store
from relight.store.errors import StoreError
from relight.store.stores import LEAST_FREE

SURVEY_PATIENCE = 60.0
"""Seconds for all questions about the nodes of one cluster."""
_LOOK_SECONDS = 5.0
_LOOK_BYTES = 1024 * 1024


class Standing(StrEnum):
    """How something is: a warning is what relight can do without, a problem what it cannot."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


class Check(Record, frozen=True, kw_only=True):
    """What was looked at, how it is, one sentence of what was seen, and what to do about it."""

    what: str
    standing: Standing
    sentence: str
    cure: str = ""


def every_check(settings: Settings, environ: Mapping[str, str], at: Instant) -> Iterator[Check]:
    """Yield every check of what the settings describe, in the order in which one needs the other.

    ``at`` is now: metrics servers are asked what they have just before.
    """
    rules, metric_rules = check_rules(settings.rules.directories)
    yield rules
    yield check_store(settings)
    servers = {one.name: one for one in settings.telemetry}
    for cluster in settings.clusters:
        check, nodes = _cluster(settings, cluster, environ)
        yield check
        if cluster.telemetry in servers:
            source = TelemetrySource.of(
                servers[cluster.telemetry], metric_rules, patience=SURVEY_PATIENCE
            )
            yield from check_telemetry(source, cluster.name, nodes, at)
        else:
            cure = "Name a metrics server in its key telemetry."
            told = "It names none: hangs and slow nodes are told by logs and the scheduler alone."
            yield _warning(f"telemetry of cluster {cluster.name}", told, cure)
        yield from check_kernel_logs(cluster, nodes, at)
    for name in sorted(servers.keys() - {one.telemetry for one in settings.clusters}):
        told = "No cluster names it in its key telemetry, so it is not asked."
        yield _warning(f"telemetry {name}", told)
    for service in settings.attribution:
        yield check_attribution(service)


def check_cluster(name: str, eyes: Eyes) -> tuple[Check, tuple[str, ...]]:
    """Return how the scheduler answers, and the nodes that telemetry and kernel logs should know.

    These are the nodes with GPUs; where the scheduler tells of none, all of them.
    """
    what = f"cluster {name}"
    cure = "See that Slurm's commands work here, and slurm_conf and bin_dir in the settings."
    nodes = eyes.nodes()
    if isinstance(nodes, Unseen):
        return _problem(what, f"The nodes are not seen: {nodes.why}.", cure), ()
    jobs = eyes.jobs()
    if isinstance(jobs, Unseen):
        return _problem(what, f"The jobs are not seen: {jobs.why}.", cure), ()
    gpus = [node.name for node in nodes.value if node.gpus]
    told = f"It answers: {_count(nodes.value, 'node')}, {len(gpus)} with GPUs, " + _count(
        jobs.value, "job"
    )
    asked = tuple(gpus or (node.name for node in nodes.value))
    if not asked:
        return _warning(what, f"{told}.", "See that this is the right cluster."), ()
    return _ok(what, f"{told}."), asked


def check_telemetry(
    source: TelemetrySource, cluster: str, nodes: Sequence[str], at: Instant
) -> Iterator[Check]:
    """Yield whether a server answers, which of the nodes it knows, and what it is blind to."""
    what = f"telemetry {source.name}, cluster {cluster}"
    seen = source.survey(nodes, at)
    if seen.unseen:
        yield _problem(what, seen.unseen)
        return
    if not nodes:
        yield _warning(what, "It answers; which nodes to look for is not known.")
        return
    yield _known(what, seen)
    for told in (*seen.blind, *source.try_rules(at)):
        yield _warning(what, told)


def check_kernel_logs(cluster: Cluster, nodes: Sequence[str], at: Instant) -> Iterator[Check]:
    """Yield for each pattern of how many nodes the file can be read, and whose lines bear no time.

    ``at`` is now.
    """
    zone = local_zone()
    what = f"kernel logs of {cluster.name}"
    for pattern in cluster.kernel_logs:
        if not nodes:
            yield _warning(what, f"{pattern}: which nodes to look for is not known.")
            continue
        files = {node: _first_readable(pattern, node) for node in nodes}
        missing = [node for node, file in files.items() if file is None]
        timeless = [node for node, file in files.items() if file and is_timeless(file, at, zone)]
        told = f"{pattern} can be read for {len(nodes) - len(missing)} of {_count(nodes, 'node')}"
        if timeless:
            cure = "Gather them with rsyslog, journalctl -o short-iso or dmesg -T."
            lines = f"{pattern}: no line of {shown(timeless)} bears a time of day, so none is used."
            yield _warning(what, lines, cure)
        if not missing:
            if not timeless:
                yield _ok(what, f"{told}.")
            continue
        cure = "See where the logs are gathered, and that relight may read them."
        standing = Standing.WARNING if len(missing) < len(nodes) else Standing.PROBLEM
        yield Check(
            what=what, standing=standing, sentence=f"{told}, not for {shown(missing)}.", cure=cure
        )


def check_attribution(settings: Attribution) -> Check:
    """Return whether anything at all answers at a service's address; nothing is handed in."""
    what = f"attribution {settings.name}"
    limits = Limits(
        seconds=min(in_seconds(settings.timeout), _LOOK_SECONDS), most_bytes=_LOOK_BYTES
    )
    try:
        status = exchange("GET", settings.url, {"User-Agent": "relight"}, None, limits).status
    except TooLarge:
        return _ok(what, f"Something answers at {settings.url}.")
    except NoAnswer as error:
        return _warning(what, as_sentence(error), "Without it relight's own verdict stands alone.")
    return _ok(what, f"Something answers at {settings.url} (status {status}).")


def check_store(settings: Settings) -> Check:
    """Return whether the state folder can be written and its database can be used."""
    folder = Path(settings.store.path)
    if not folder.is_dir():
        return _unmade(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        return _problem("store", f"{folder} cannot be written.", "See who owns it, and its mode.")
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        told = f"The disk of {folder} is all but full ({free // 1024} KiB are free)."
        return _problem("store", told, "Make room.")
    file = Path(settings.store.database.removeprefix("sqlite:///"))
    if not file.exists():
        return _ok("store", f"{folder} can be written; the database is made at the first start.")
    try:
        Store.open(settings.store.database, read_only=True).close()
    except StoreError as error:
        return _problem("store", f"{error}.")
    return _ok("store", f"{folder} can be written, and its database can be used.")


def check_rules(directories: Sequence[str]) -> tuple[Check, tuple[MetricRule, ...]]:
    """Return whether the rules can be used, and those over metrics."""
    folders = [Path(directory) for directory in directories]
    try:
        lines, metrics = load(folders), load_metric_rules(folders)
    except (RuleError, MetricRuleError) as error:
        cure = "Correct them: relight rules check FILE tells of each."
        return _problem("rules", f"{error}.", cure), ()
    told = f"{_count(lines, 'rule')} over lines, {len(metrics)} over metrics."
    return _ok("rules", told), metrics


def _cluster(
    settings: Settings, cluster: Cluster, environ: Mapping[str, str]
) -> tuple[Check, tuple[str, ...]]:
    try:
        (parts,) = parts_of(msgspec.structs.replace(settings, clusters=(cluster,)), environ)
    except SettingsError as error:
        return _problem(f"cluster {cluster.name}", f"{error}."), ()
    return check_cluster(cluster.name, parts.eyes)


def _known(what: str, seen: Survey) -> Check:
    missing = [node for node in seen.asked if node not in seen.known]
    often = f", scraped every {seen.interval:g} s" if seen.interval else ""
    told = (
        f"It knows {len(seen.known)} of {_count(seen.asked, 'node')} by the label "
        f"{' and '.join(seen.labels)}, and {len(seen.metrics)} of the series that are read{often}"
    )
    if not missing:
        return _ok(what, f"{told}.")
    cure = "Let it scrape them, or name the label that holds their names in node_labels."
    return _warning(what, f"{told}; not {shown(missing)}.", cure)


def _unmade(folder: Path) -> Check:
    above = next((one for one in folder.absolute().parents if one.exists()), Path("/"))
    if folder.exists() or not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        told = f"{folder} is no folder and cannot be made."
        return _problem("store", told, f"Make it, or let relight write in {above}.")
    return _ok("store", f"{folder} is made at the first start.")


def _first_readable(pattern: str, node: str) -> str | None:
    """Return the file of a node that is read, None where there is none."""
    return next((name for name in names_of(pattern, node) if _is_readable(name)), None)


def _is_readable(path: str) -> bool:
    """Tell whether a regular file can be opened to read; a pipe or a device never blocks."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return False
    try:
        return stat.S_ISREG(os.fstat(opened).st_mode)
    finally:
        os.close(opened)


def _count(things: Sequence[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def _ok(what: str, sentence: str) -> Check:
    return Check(what=what, standing=Standing.OK, sentence=sentence)


def _warning(what: str, sentence: str, cure: str = "") -> Check:
    return Check(what=what, standing=Standing.WARNING, sentence=sentence, cure=cure)


def _problem(what: str, sentence: str, cure: str = "") -> Check:
    return Check(what=what, standing=Standing.PROBLEM, sentence=sentence, cure=cure)
