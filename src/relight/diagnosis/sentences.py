"""The first sentence of a verdict: what happened, in whose words, and where.

Rules write sentences for lines that may name nobody: ``A rank (3) waited``. Here they are put
as one says them, the exception's own message is quoted, and a place is told once.
"""

from __future__ import annotations

import re

from relight.diagnosis.deaths import root_text
from relight.model.findings import Finding, Kind, Role

_NUMBER = re.compile(r"(?<![\w.])\d{1,7}(?![\w.])")
_AFTER_A_CAPITAL = frozenset(" abcdefghijklmnopqrstuvwxyz")
_SHOWN_RANKS = 4
_SHOWN_NODES = 3
_SHOWN_MESSAGE = 120
"""Characters of an exception's message that are quoted."""
_NAMED_THING = re.compile(
    r"\b(?P<article>An?|an?|The|the) (?P<sort>(?:AMD|Intel|Ascend) )?"
    r"(?P<thing>rank|task|node|host|GPU|NPU|disk|device|agent) \((?P<name>[^()]{1,100})\)"
)
_CAME = re.compile(
    r"\b(?P<came>\d{1,7}) of (?P<all>\d{1,7}) (?P<verb>had come|have come|came)\b(?!, \d)"
)
_DID_NOT = {"had come": "had not", "have come": "have not", "came": "did not"}
_PRINTED_TAB = "\\t"
_NARROWEST = 60
"""Characters of a line that may have been broken at a terminal's width."""
_GOES_ON = re.compile(r"[a-z][\w-]{0,30} [\w!=<>*+-]")
_QUOTED = frozenset(
    {
        "user_code_exception",
        "config_error",
        "shape_mismatch",
        "data_corrupt",
        "checkpoint_corrupt",
        "worker_process_lost",
    }
)
"""Families of which the message tells what the family cannot: which setting, shape or file."""
_RAISED = re.compile(
    r"(?<![\w.])[A-Za-z_][\w.]{0,100}(?:Error|Exception|Interrupt|Exit|Invalid|Failure): {1,4}"
    r"(?P<message>\S[^\n]{0,2000})"
)


def sentence_of(root: Finding, nodes: tuple[str, ...], ranks: tuple[int, ...]) -> str:
    """Return what happened with where, as a clause.

    Victims that wait print it elsewhere than it happened. What the sentence names already is
    not told again; who else is, is told as such.
    """
    said = _with_message(clause(plainly(root.sentence)), root)
    if root.kind is Kind.HANG and root.role is Role.SYMPTOM:
        where = _where(ranks, ())
        return f"{said}; it is probably {where}" if where else said
    told = {int(number) for number in _NUMBER.findall(said)} if "rank" in said.lower() else set()
    other_ranks = tuple(rank for rank in ranks if rank not in told)
    other_nodes = tuple(node for node in nodes if node not in said)
    where = _where(other_ranks, other_nodes)
    if not where:
        return said
    some_are_told = len(other_ranks) < len(ranks) if other_ranks else len(other_nodes) < len(nodes)
    return f"{said} (likewise {where})" if some_are_told else f"{said} ({where})"


def clause(sentence: str) -> str:
    """Return a sentence as part of another: without full stop, its first word uncapitalised."""
    words = sentence.rstrip(". ")
    starts_plainly = len(words) > 1 and words[0].isupper() and words[1] in _AFTER_A_CAPITAL
    return words[0].lower() + words[1:] if starts_plainly else words


def plainly(sentence: str) -> str:
    """Return a rule's sentence as one says it, with how many did not come where some did."""

    def named(match: re.Match[str]) -> str:
        several = "s" if "," in match["name"] else ""
        words = f"{match['sort'] or ''}{match['thing']}{several} {match['name']}"
        return words[0].upper() + words[1:] if match["article"][0].isupper() else words

    def counted(match: re.Match[str]) -> str:
        missing = int(match["all"]) - int(match["came"])
        return f"{match[0]}, {missing} {_DID_NOT[match['verb']]}" if missing > 0 else match[0]

    return _CAME.sub(counted, _NAMED_THING.sub(named, sentence))


def message_of(text: str, below: str = "") -> str:
    """Return the message of the exception that a line tells, shortened; empty where none is.

    A message that stops in the middle goes on in the line ``below``.
    """
    match = _RAISED.search(text)
    if match is None:
        return ""
    message = match["message"].rstrip()
    if below and (message.endswith(":") or _is_wrapped(text, below)):
        message = f"{message} {below.removeprefix(_PRINTED_TAB)}"
    message = " ".join(message.split()).rstrip(" .:")
    if len(message) <= _SHOWN_MESSAGE:
        return message
    kept = message[:_SHOWN_MESSAGE].rpartition(" ")[0] or message[:_SHOWN_MESSAGE]
    return f"{kept} …"


def completed(said: str, root: Finding, below: str) -> str:
    """Return a sentence in which the message that is quoted goes on as the line ``below`` does."""
    if root.family not in _QUOTED:
        return said
    text = root_text(root)
    half, whole = message_of(text), message_of(text, below)
    return said.replace(_quote(half), _quote(whole)) if half else said


def _is_wrapped(text: str, below: str) -> bool:
    """Tell whether a terminal's width broke a sentence, and no other program goes on below."""
    is_open = len(text) >= _NARROWEST and text[-1:].isalnum()
    return is_open and _GOES_ON.match(below) is not None


def _quote(message: str) -> str:
    first, inside, last = message[0], message[1:-1], message[-1]
    is_quoted = len(message) > 1 and first in "\"'" and first == last and first not in inside
    return message if is_quoted else f'"{message}"'


def _with_message(said: str, root: Finding) -> str:
    """Return a clause with what the exception says, in place of a part of that at its end."""
    message = message_of(root_text(root)) if root.family in _QUOTED else ""
    if not message or message in said:
        return said
    head, _, tail = said.rpartition(": ")
    if head and tail in message:
        said = head
    return f"{said}: {_quote(message)}"


def _where(ranks: tuple[int, ...], nodes: tuple[str, ...]) -> str:
    """Return a place in words: ``rank 3 on node-7``."""
    hosts = ", ".join(nodes[:_SHOWN_NODES]) + (", …" if len(nodes) > _SHOWN_NODES else "")
    if not ranks:
        return hosts
    shown = ", ".join(str(rank) for rank in ranks[:_SHOWN_RANKS])
    shown += ", …" if len(ranks) > _SHOWN_RANKS else ""
    named = f"rank{'s' if len(ranks) > 1 else ''} {shown}"
    return f"{named} on {hosts}" if hosts else named
