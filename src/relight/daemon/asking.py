"""Questions of the core that wait for somebody outside the backend to answer them.

They are kept in memory only: after a new start nobody answers, and the core, which waits for a
bounded time, goes on without (a watchdog fails open).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from relight.model.evidence import Witness
from relight.model.questions import AttributionAsked, EvidenceAsked, Question

MOST_WAITING = 2_000
"""Questions that wait at once, of each kind; a newer one drops the oldest."""

Whom = Witness | str
"""A witness, or the name of an attribution service."""
Asked = EvidenceAsked | AttributionAsked
"""The questions that are kept."""


class Asking:
    """Keeps questions until whoever can answer takes them. Safe for any thread.

    ``services`` tells for each cluster which attribution services are asked there.
    """

    def __init__(self, services: Mapping[str, Iterable[str]]) -> None:
        self._services = {cluster: tuple(names) for cluster, names in services.items()}
        self._lock = threading.Lock()
        self._waiting: dict[Whom, OrderedDict[str, Asked]] = {}

    def ask(self, questions: Iterable[Question]) -> None:
        """Keep questions; one about the same attempt takes the place of an older one."""
        with self._lock:
            for question in questions:
                if isinstance(question, EvidenceAsked):
                    self._keep(question.witness, str(question.window.attempt), question)
                elif isinstance(question, AttributionAsked):
                    for name in self._services.get(question.job.cluster, ()):
                        self._keep(name, f"{question.job}-{question.attempt}", question)

    def take(self, whom: Whom, clusters: frozenset[str]) -> Asked | None:
        """Return the oldest question to ``whom`` about a job of ``clusters``, kept no more."""
        with self._lock:
            waiting = self._waiting.get(whom, OrderedDict())
            for name, question in waiting.items():
                if question.job.cluster in clusters:
                    del waiting[name]
                    return question
        return None

    def _keep(self, whom: Whom, name: str, question: Asked) -> None:
        waiting = self._waiting.setdefault(whom, OrderedDict())
        waiting.pop(name, None)
        waiting[name] = question
        if len(waiting) > MOST_WAITING:
            waiting.popitem(last=False)
