"""The witness that asks a metrics server about the nodes of one attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from relight.clients.prometheus import Answer, MetricsError, MetricsServer, ServerUnreachable
from relight.model.evidence import Evidence, Window
from relight.model.findings import Finding
from relight.model.instants import EPOCH, Instant, Span, in_seconds, later, seconds
from relight.model.telemetry import Series, Sight
from relight.perception.telemetry.judging import judge
from relight.perception.telemetry.scarcity import scarcity
from relight.perception.telemetry.scenes import whose_gpus_are_not_told
from relight.rules.metrics import MetricRule, findings_of
from relight.settings.records import Telemetry
from relight.sources.telemetry.catalogue import blind_spots
from relight.sources.telemetry.discoveries import Scope, discover
from relight.sources.telemetry.fetching import USUAL_INTERVAL, fetch
from relight.sources.telemetry.names import NodeNames, settle
from relight.sources.telemetry.patience import Patience
from relight.sources.telemetry.surveys import (
    Survey,
    as_sentence,
    disputes,
    shown,
    survey,
    unknown_nodes,
)

BEFORE = seconds(600)
"""Before the trouble: where the job's own level is learnt, and where a fault may be seen first.
Source of both spans: Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning
Research Clusters" (2024), which looks for causes from 10 minutes before to 5 minutes after."""
AFTER = seconds(300)
"""After it: what exporters tell late."""
PATIENCE = 10.0
"""Seconds for all questions of one look: a policy by itself waits 15 seconds for evidence, and what
was seen has to be judged in that time too."""
_BY_ABSENCE = frozenset({"telemetry-gone", "gpu-count-lower"})
"""Findings that follow from what is missing."""
_MOST_SENTENCES = 40


@dataclass(frozen=True, slots=True)
class _Looked:
    """What was seen, and whether that is all the server has: if not, a gap tells nothing."""

    sight: Sight
    is_whole: bool = False


class TelemetrySource:
    """Asks one metrics server; nothing is raised, what cannot be told is said.

    ``labels`` are those that may name a node; ``rules`` are the site's own. ``patience``, in
    seconds, is for one look with all of its questions. Any thread may look.
    """

    def __init__(
        self,
        name: str,
        server: MetricsServer,
        labels: Sequence[str],
        *,
        rules: Iterable[MetricRule] = (),
        patience: float = PATIENCE,
    ) -> None:
        self.name = name
        self._server = server
        self._labels = tuple(labels)
        self._rules = tuple(rules)
        self._patience = patience

    @classmethod
    def of(
        cls,
        settings: Telemetry,
        rules: Iterable[MetricRule] = (),
        *,
        patience: float = PATIENCE,
    ) -> Self:
        """Return the source that the settings describe."""
        server = MetricsServer(
            settings.url,
            timeout=in_seconds(settings.timeout),
            token_file=settings.token_file,
            tenant=settings.tenant,
        )
        return cls(settings.name, server, settings.node_labels, rules=rules, patience=patience)

    def look(self, window: Window) -> Evidence:
        """Return what the series of the attempt's nodes tell, by relight's rules and the site's."""
        scope = self._scope(window.allocation.nodes, *time_asked(window))
        looked = self._looked(scope)
        judged, notes = _judged(looked, window)
        unseen = looked.sight.unseen
        results = self._asked_rules(
            scope, looked.sight.interval or USUAL_INTERVAL, notes, is_told=bool(unseen)
        )
        by_rules = [one for rule, told in results for one in findings_of(rule, told, window)]
        blind = (*looked.sight.blind, *notes)
        if unseen and not any(told for _, told in results):
            return Evidence(unseen=unseen, blind=_bounded(blind))
        first = (unseen,) if unseen else ()
        return Evidence(findings=(*judged, *by_rules), blind=_bounded((*first, *blind)))

    def why_not(self) -> str:
        """Return in a sentence why the server cannot be asked now, or nothing where it can."""
        try:
            self._server.instant("vector(1)", EPOCH)
        except MetricsError as error:
            return f"{error}."
        return ""

    def sight(self, window: Window) -> Sight:
        """Return all series of the attempt's nodes in the time asked, and what is not seen."""
        return self._looked(self._scope(window.allocation.nodes, *time_asked(window))).sight

    def survey(self, nodes: Iterable[str], at: Instant) -> Survey:
        """Return what the server has of some nodes just before ``at``, for who sets it up."""
        return survey(self._scope(tuple(nodes), Instant(at - AFTER), at))

    def try_rules(self, at: Instant) -> tuple[str, ...]:
        """Return a sentence for each of the rules whose expression the server does not take."""
        notes: list[str] = []
        scope = self._scope((), Instant(at - AFTER), at)
        self._asked_rules(scope, in_seconds(AFTER), notes)
        return tuple(notes)

    def _scope(self, nodes: tuple[str, ...], since: Instant, until: Instant) -> Scope:
        return Scope(
            server=self._server,
            names=NodeNames(nodes),
            labels=self._labels,
            since=since,
            until=until,
            patience=Patience(self._patience),
        )

    def _looked(self, scope: Scope) -> _Looked:
        if not scope.names.nodes or scope.until <= scope.since:
            return self._unseen(scope, "There is no node or no time to ask about.")
        try:
            found = discover(scope)
            if not found.placed:
                return self._unseen(scope, unknown_nodes(scope, found))
        except MetricsError as error:
            return self._unseen(scope, as_sentence(error))
        haul = fetch(scope, found)
        if not haul.series:
            return self._unseen(scope, *(haul.troubles or ["It has no samples of these nodes."]))
        silent = _silent(scope.names.nodes, haul.series) if haul.is_whole else ()
        blind = (
            *disputes(found),
            *silent,
            *haul.troubles,
            *(f"The server warns: {text}." for text in found.warnings),
            *haul.notes,
            *blind_spots(found.placed),
        )
        sight = Sight(
            source=self.name,
            since=scope.since,
            until=scope.until,
            series=tuple(haul.series),
            interval=haul.interval,
            blind=_bounded(blind),
        )
        return _Looked(sight=sight, is_whole=haul.is_whole)

    def _unseen(self, scope: Scope, why: str, *more: str) -> _Looked:
        sight = Sight(
            source=self.name,
            since=scope.since,
            until=scope.until,
            unseen=f"Metrics server {self.name}: {why}",
            blind=_bounded(more),
        )
        return _Looked(sight=sight)

    def _asked_rules(
        self, scope: Scope, step: float, notes: list[str], *, is_told: bool = False
    ) -> list[tuple[MetricRule, tuple[Series, ...]]]:
        """Return the series that each rule gives for the nodes; what fails is added to ``notes``.

        ``is_told`` says that it is told already if the server does not answer at all.

        Also a server that has no series which relight itself reads may answer them.
        """
        results: list[tuple[MetricRule, tuple[Series, ...]]] = []
        for rule in self._rules:
            try:
                answer = scope.server.range(
                    rule.expr, scope.since, scope.until, step=step, patience=scope.patience.left()
                )
            except MetricsError as error:
                is_gone = isinstance(error, ServerUnreachable)
                if not (is_gone and is_told):
                    notes.append(f"The rule {rule.id} could not be asked: {error}.")
                if is_gone:
                    break
                continue
            notes.extend(f"The server warns of rule {rule.id}: {text}." for text in answer.warnings)
            results.append((rule, self._of_rule(rule, answer, scope.names)))
        return results

    def _of_rule(self, rule: MetricRule, answer: Answer, names: NodeNames) -> tuple[Series, ...]:
        """Return the results of a rule that name a node of the attempt (law 10)."""
        labels = (rule.node_label,) if rule.node_label else self._labels
        found: list[Series] = []
        for label in labels:
            values = [row.labels.get(label, "") for row in answer.rows]
            settled = settle(values, names).nodes
            found = [
                Series(
                    metric=row.metric or rule.id,
                    node=settled[value],
                    device=row.labels.get(rule.device_label, "") if rule.device_label else "",
                    labels=row.labels,
                    samples=row.samples,
                )
                for row, value in zip(answer.rows, values, strict=True)
                if value in settled and row.samples
            ]
            if found:
                break
        return tuple(found)


def time_asked(window: Window) -> tuple[Instant, Instant]:
    """Return the time to ask about: from ten minutes before the trouble on.

    A silence or a slowness is looked at until the window's end, however long it lasts, because
    what is now is what counts. Any other window begins ten minutes before its trouble, and ends
    five minutes after it at the latest: the nodes of an ended attempt may serve another job soon.
    """
    trouble = [at for at in (window.silent_since, window.slow_since) if at is not None]
    if trouble:
        return max(Instant(min(trouble) - BEFORE), window.since), window.until
    return window.since, min(later(window.since, Span(BEFORE + AFTER)), window.until)


def _judged(looked: _Looked, window: Window) -> tuple[tuple[Finding, ...], list[str]]:
    """Return what the sight tells; where it is not whole, no gap in it is taken for a sign."""
    judged = judge(looked.sight, window)
    notes = list(scarcity(looked.sight, window))
    if shared := whose_gpus_are_not_told(looked.sight, window):
        notes.append(
            f"{shown(shared)} shows more GPUs than the job has there, and no label hpc_job tells "
            "whose they are: how busy they are says nothing of this job."
        )
    kept = tuple(one for one in judged if looked.is_whole or one.rule not in _BY_ABSENCE)
    if len(kept) < len(judged):
        notes.append(
            "The answer was not whole, so nothing is concluded from what is missing in it."
        )
    return kept, notes


def _silent(nodes: Sequence[str], series: Iterable[Series]) -> Iterator[str]:
    """Yield a sentence when some nodes have no series at all."""
    known = {one.node for one in series}
    missing = [node for node in nodes if node not in known]
    if missing:
        yield f"No series name {shown(missing)}: nothing can be told of them."


def _bounded(sentences: Iterable[str]) -> tuple[str, ...]:
    """Return the sentences, each once, and how many there are beyond those that fit."""
    every = tuple(dict.fromkeys(sentences))
    if len(every) <= _MOST_SENTENCES:
        return every
    return (*every[:_MOST_SENTENCES], f"And {len(every) - _MOST_SENTENCES} more of that kind.")
