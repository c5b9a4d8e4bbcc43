"""What perception listens for, compiled once, and for whom it listens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relight.model.findings import Provenance, Role
from relight.model.jobs import AttemptKey
from relight.perception.matching import Matcher, Patterned, build_matcher
from relight.perception.shapes import SHAPES
from relight.perception.tracebacks import HEADLINE
from relight.rules.patterns import CompiledRule
from relight.rules.schema import Rule


@dataclass(frozen=True, slots=True)
class _Headline:
    patterns: tuple[str, ...] = (HEADLINE,)


class Lexicon:
    """Rules, shapes of progress and the traceback's headline in one matcher.

    Compiling takes about half a second, so make one and share it: it is never changed.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules: tuple[Rule, ...] = tuple(rules)
        things: list[Patterned] = [*self.rules, *SHAPES, _Headline()]
        self.matcher: Matcher = build_matcher(things)
        self._compiled: dict[int, CompiledRule] = {}

    def heard(self, indexes: Sequence[int], line: bytes) -> Heard:
        """Return what the matcher's indexes for ``line`` stand for.

        A rule that knows the line to be harmless silences the others.
        """
        first_shape = len(self.rules)
        headline = first_shape + len(SHAPES)
        hits: list[Hit] = []
        for index in indexes:
            if index < first_shape:
                captures = self._rule(index).captures(line)
                if captures is not None:
                    hits.append(Hit(rule=self.rules[index], captures=captures))
        harmless = [hit for hit in hits if hit.rule.role is Role.BENIGN]
        return Heard(
            hits=tuple(harmless[:1] or hits),
            shapes=tuple(
                index - first_shape for index in indexes if first_shape <= index < headline
            ),
            is_headline=headline in indexes,
        )

    def _rule(self, index: int) -> CompiledRule:
        """Return a rule's expressions, compiled when a line first asks for them."""
        compiled = self._compiled.get(index)
        if compiled is None:
            compiled = self._compiled[index] = CompiledRule(self.rules[index])
        return compiled


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that matches a line, and the named groups of its expression."""

    rule: Rule
    captures: dict[str, str]


@dataclass(frozen=True, slots=True)
class Heard:
    """What one line holds: hits, indexes of ``SHAPES``, the first line of a traceback."""

    hits: tuple[Hit, ...] = ()
    shapes: tuple[int, ...] = ()
    is_headline: bool = False


@dataclass(frozen=True, slots=True)
class Ears:
    """A lexicon, the attempt whose files are read, and what sort of source they are.

    What a job's own log says stays the job's claim (law 10), whoever its lines pretend to be;
    only a reader of the kernel's or the scheduler's own log sets another ``provenance``.
    """

    lexicon: Lexicon
    attempt: AttemptKey
    provenance: Provenance = Provenance.JOB_LOG
