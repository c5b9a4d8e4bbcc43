"""All that is known of one attempt, from every witness, made into one verdict.

The order of trust where signs disagree: a machine that a witness saw break, a line that explains
itself, who died or never came first, what links and peers tell, and last what is merely unwell.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from relight.diagnosis.cascades import Unwound, unwind
from relight.diagnosis.causes import Located, from_root, of_events
from relight.diagnosis.courses import Course
from relight.diagnosis.endings import Ending
from relight.diagnosis.hangs import is_hang, of_hang
from relight.diagnosis.numbers import of_corruption, of_numbers
from relight.diagnosis.placing import Places
from relight.diagnosis.showing_witnesses import explained
from relight.diagnosis.slowness import of_slowness
from relight.diagnosis.stating import Reading, said_of, stated, went_on, with_words
from relight.diagnosis.trust import broken_by
from relight.diagnosis.witnesses import GONE, Heard, is_hard, is_most, nodes_of, voice_of
from relight.model.findings import Domain, Finding, Kind, Remedy, Role
from relight.model.verdicts import SetAside, Suspect, Term

_UNEXPLAINED = frozenset({Domain.UNKNOWN, Domain.NETWORK, Domain.HARDWARE})
_PEOPLE = frozenset({Domain.APPLICATION, Domain.USER})
_UNWELL = Reading(
    domain=Domain.HARDWARE,
    remedy=Remedy.RESTART_EXCLUDING_NODE,
    weight=0.45,
    what="one node alone is seen to be unwell, and nothing else explains the end",
    why="it is seen to be unwell, and nothing else explains the end",
    kind=Kind.NODE,
)
_NODE_FAILURE = "node-failure"
_WENT_ON = "the run went on and completed steps after it"
_SURVIVED = "steps were completed after it"


def fused(heard: Heard, places: Places, ending: Ending, course: Course | None) -> Located | None:
    """Return the one verdict on an attempt, None where nothing that was found tells of a cause."""
    heard = _without_survived(heard, ending)
    log = of_events(heard.events, places, ending, course)
    heard = _current(heard, log)
    located = _chosen(heard, places, ending, log)
    return explained(located, heard, places) if located is not None else None


def _without_survived(heard: Heard, ending: Ending) -> Heard:
    """Return findings without lines that the run went on after, to where it is complained of."""
    complaint = heard.silence or (heard.slowdown if ending.state is None else None)
    if complaint is None:
        return heard
    survived = [one for one in heard.events if went_on(one, complaint)]
    aside = [SetAside(finding=one.id, rule=one.rule, why=_WENT_ON) for one in survived]
    events = tuple(one for one in heard.events if one not in survived)
    return msgspec.structs.replace(heard, events=events, set_aside=(*heard.set_aside, *aside))


def _current(heard: Heard, log: Located | None) -> Heard:
    """Return findings without a silence that steps came after, by a line's own count of them."""
    silence, root = heard.silence, log.root if log is not None else None
    if silence is None or root is None or root.step is None or silence.step is None:
        return heard
    if root.step <= silence.step:
        return heard
    aside = SetAside(finding=silence.id, rule=silence.rule, why=_SURVIVED)
    return msgspec.structs.replace(heard, silence=None, set_aside=(*heard.set_aside, aside))


def _chosen(heard: Heard, places: Places, ending: Ending, log: Located | None) -> Located | None:
    if log is not None and log.verdict.cause == _NODE_FAILURE:
        return _named(log, heard, places)
    corrupted = of_corruption(heard, places)
    if corrupted is not None:
        return corrupted
    broken = broken_by(heard, places)
    if broken:
        return _of_broken(broken, heard, places, ending, log)
    hung = of_hang(heard, places, ending, log) if is_hang(heard, log, ending) else None
    return (
        hung
        or of_numbers(heard, ending, log)
        or of_slowness(heard, places, ending, log)
        or _of_unwell(heard, places, log)
        or log
    )


def _named(log: Located, heard: Heard, places: Places) -> Located:
    """Return the loss of a node that the scheduler does not name, by the one that others name."""
    if log.verdict.suspects:
        return log
    broken = broken_by(heard, places)
    signs = (*broken, *heard.of(GONE), *heard.soft)
    nodes = nodes_of(broken or heard.of(GONE) or heard.soft, places)
    if len(nodes) != 1 or is_most(nodes, places):
        return log
    pointing = next(one for one in signs if places.of(one) == nodes)
    voice = voice_of(pointing, nodes)
    suspect = Suspect(node=nodes[0], share=1.0, why=f"a node failed, and {voice} speaks against it")
    remedy = Remedy.RESTART_EXCLUDING_NODE
    verdict = msgspec.structs.replace(log.verdict, suspects=(suspect,), remedy=remedy)
    named = msgspec.structs.replace(log, verdict=verdict, nodes=nodes, remedy=remedy)
    return with_words(named, f"; {nodes[0]} by all that is seen: {said_of(pointing)}")


def _of_broken(
    broken: Sequence[Finding],
    heard: Heard,
    places: Places,
    ending: Ending,
    log: Located | None,
) -> Located:
    """Return that a machine broke, by a witness's word: before every line that says otherwise."""
    nodes = nodes_of(broken, places)
    is_shared = is_most(nodes, places)
    lines = [one for one in heard.events if not is_hard(one)]
    beside = of_events(lines, places, ending)
    if log is not None and _is_of(log, nodes) and not is_shared:
        located = log
    else:
        located = _from_broken(broken[0], nodes, heard, places)
    if is_shared:
        return _shared(located)
    return _with_log(located, beside)


def _from_broken(root: Finding, nodes: tuple[str, ...], heard: Heard, places: Places) -> Located:
    unwound = unwind(heard.events, places)
    rivals = tuple(
        one
        for one in (unwound.root, *unwound.rivals)
        if one is not None and one.rule != root.rule and not _is_on(one, nodes, places)
    )
    aside = tuple(one for one in unwound.set_aside if one.finding != root.id)
    told = Unwound(root=root, rivals=rivals, set_aside=aside)
    return from_root(root, told, heard.events, places, Course())


def _is_of(log: Located, nodes: tuple[str, ...]) -> bool:
    """Tell whether what events lead to is itself a fault of machines that a witness saw break."""
    suspects = {one.node for one in log.verdict.suspects}
    is_machine = log.verdict.domain in (Domain.HARDWARE, Domain.SYSTEM_SOFTWARE)
    return is_machine and bool(suspects) and suspects <= set(nodes)


def _is_on(one: Finding, nodes: tuple[str, ...], places: Places) -> bool:
    where = places.of(one)
    return one.domain not in _PEOPLE and bool(where) and set(where) <= set(nodes)


def _shared(located: Located) -> Located:
    terms = [Term(what="most nodes show the like, so none is blamed", weight=-0.2)]
    verdict = msgspec.structs.replace(located.verdict, remedy=Remedy.HOLD, suspects=())
    held = msgspec.structs.replace(located, verdict=verdict, nodes=(), remedy=Remedy.HOLD)
    return with_words(held, "; most nodes of the job show the like, so none is blamed", terms)


def _with_log(located: Located, beside: Located | None) -> Located:
    """Return a broken machine with what the lines of the log alone would lead to."""
    root = beside.root if beside is not None else None
    if beside is None or root is None or located.root is None or root.id == located.root.id:
        return located
    if beside.verdict.domain in _PEOPLE and root.role is not Role.SYMPTOM:
        words = f"; but the log shows a cause of its own: {beside.verdict.sentence}"
        return with_words(located, words)
    named = {one.node for one in beside.verdict.suspects}
    is_same = root.rule == located.root.rule or bool(named & set(located.nodes))
    if is_same or (named and not named & set(located.nodes)):
        return located
    return with_words(located, f"; the log shows what followed: {said_of(root)}")


def _of_unwell(heard: Heard, places: Places, log: Located | None) -> Located | None:
    """Return that the one node that is unwell is suspected, where nothing explains the end."""
    nodes = nodes_of(heard.soft, places)
    if len(nodes) != 1 or is_most(nodes, places):
        return None
    if log is not None and (log.verdict.suspects or log.verdict.domain not in _UNEXPLAINED):
        return None
    pointing = next(one for one in heard.soft if places.of(one))
    located = stated(pointing, _UNWELL, nodes=nodes)
    if log is None or log.root is None:
        return located
    return with_words(located, f"; the log shows what followed: {said_of(log.root)}")
