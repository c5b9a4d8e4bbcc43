"""Who is watched, and under which limits: settings and the job's own comment, read together.

A job's comment is the user's. It can pick a policy and narrow what that policy allows,
never widen it. A comment that cannot be read fully opts the job in *with errors*: it is
listed, the message names the key, and nothing is done for it.

Two spellings mean the same: ``{"relight": {"policy": "default", "max_restarts": 3}}`` and,
from NVIDIA's Autonomous Job Recovery, ``{"APS": {"auto_resume_mode": "requeue",
"max_requeue_times": 3}}`` (its tutorials, Mission Control 2.1). A comment may hold other
tools' keys beside them; they are theirs.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from relight.model.jobs import JobFact
from relight.model.records import Record
from relight.policy.policies import OptIn, Policy, PolicyBook

COMMENT_KEYS = ("policy", "max_restarts", "logs", "checkpoint", "flight_recorder", "opt_out")
APS_KEYS = ("auto_resume_mode", "max_requeue_times")
DEFAULT_POLICY = "default"
MOST_COMMENT = 65_536
"""Characters; a longer comment is not read."""

_MOST_PATH = 4_096  # Linux's PATH_MAX
_MOST_ERRORS = 10
_MOST_SHOWN = 60
_MOST_GUESSED = 64
_MENTION = re.compile(r"(?<![\w-])(?:relight|aps)(?![\w-])", re.IGNORECASE)
_EXAMPLE = """--comment='{"relight": {"policy": "default"}}'"""


class Choice(Record, frozen=True, kw_only=True):
    """How one job is watched.

    ``max_restarts`` None leaves the policy's own number. ``logs``, ``checkpoint`` and
    ``flight_recorder`` are the user's own claims about paths (law 10). ``errors`` are
    sentences for the user; where there is one, the job is listed and left alone. ``notes``
    are sentences too, of what was read otherwise than it was written, or not taken up.
    """

    opted_in: bool = False
    policy: str = ""
    max_restarts: int | None = None
    logs: str = ""
    checkpoint: str = ""
    flight_recorder: str = ""
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def choose(fact: JobFact, book: PolicyBook) -> Choice:
    """Return how this job is watched, by its comment and the operator's opt-ins.

    The comment's policy comes first, then that of the first opt-in in file order that covers
    the job, then ``default``. Where an opt-in covers the job, the comment's policy must not go
    further than the opt-in's. Never raises: whatever is wrong stands in ``errors``.
    """
    claim = _claim_of(fact.comment)
    covering = next((opt_in for opt_in in book.opt_ins if covers(opt_in, fact)), None)
    if claim.opts_out:
        return Choice(notes=("the job's comment opts it out",))
    if not claim.speaks and covering is None:
        return Choice(notes=claim.notes)
    name = claim.policy or (covering.policy if covering else DEFAULT_POLICY)
    policy = book.policy(name)
    errors = claim.errors
    if policy is None:
        errors += (_no_such_policy(name, book, by_comment=bool(claim.policy)),)
    if policy is None or errors:
        known = "" if policy is None else policy.name
        return Choice(opted_in=True, policy=known, errors=errors, notes=claim.notes)
    ruled = book.policy(covering.policy) if covering is not None else None
    wider: tuple[str, ...] = ()
    if ruled is not None and policy.mode.goes_further_than(ruled.mode):
        wider = (
            f"policy {policy.name} goes further than the operator's {ruled.name}, so that holds",
        )
        policy = ruled
    limit, notes = _narrowed(claim.max_restarts, policy)
    return Choice(
        opted_in=True,
        policy=policy.name,
        max_restarts=limit,
        logs=claim.logs,
        checkpoint=claim.checkpoint,
        flight_recorder=claim.flight_recorder,
        notes=claim.notes + wider + notes,
    )


def covers(opt_in: OptIn, fact: JobFact) -> bool:
    """Return whether an opt-in names this job: all that it gives must match.

    Patterns are shell-style (``*``, ``?``, ``[abc]``), case matters, and each takes time in
    proportion to the name. A job that waits for several partitions, which Slurm writes with
    commas, is covered only when every one of them matches.
    """
    return (
        opt_in.cluster == fact.cluster
        and all(_matches(opt_in.partition, one) for one in fact.partition.split(","))
        and _matches(opt_in.account, fact.account)
        and _matches(opt_in.user, fact.user)
        and _matches(opt_in.name, fact.name)
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the known word that ``word`` is likeliest a misspelling of, empty when none is."""
    if len(word) > _MOST_GUESSED:
        return ""
    by_fold = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(word.casefold(), by_fold, n=1)
    return by_fold[near[0]] if near else ""


def quoted(text: str) -> str:
    """Return a foreign text in quotes, cut to a bound, with what cannot be printed escaped."""
    shown = "".join(
        one if one.isprintable() and one != '"' else ascii(one)[1:-1] for one in text[:_MOST_SHOWN]
    )
    return f'"{shown}{"…" if len(text) > _MOST_SHOWN else ""}"'


class _Claim(Record, frozen=True, kw_only=True):
    """What a comment says; one that does not speak to relight is somebody's free text."""

    speaks: bool = True
    opts_out: bool = False
    policy: str = ""
    max_restarts: int | None = None
    logs: str = ""
    checkpoint: str = ""
    flight_recorder: str = ""
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _Object(dict[str, object]):
    """A JSON object that remembers the keys that were written more than once."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        seen: set[str] = set()
        repeated: dict[str, None] = {}
        for key, _ in pairs:
            if key in seen:
                repeated[key] = None
            seen.add(key)
        self.repeated = tuple(repeated)


class _Part:
    """One part of a comment, ``relight`` or ``APS``: its values, and every error in them."""

    def __init__(self, name: str, values: _Object, known: tuple[str, ...]) -> None:
        self._name = name
        self._values = values
        self._errors = [
            f"{name}.{quoted(key)[1:-1]} is written more than once: write it once"
            for key in values.repeated[:_MOST_ERRORS]
        ]
        strange = [key for key in values if key not in known]
        for key in strange[:_MOST_ERRORS]:
            guess = did_you_mean(key, known)
            hint = f'did you mean "{guess}"?' if guess else f"known are {', '.join(known)}"
            self._errors.append(f"{name}.{quoted(key)[1:-1]} is not a key: {hint}")
        self._unsaid = max(0, len(strange) - _MOST_ERRORS)

    def errors(self) -> tuple[str, ...]:
        """Return what is wrong so far, bounded."""
        unsaid = self._unsaid + max(0, len(self._errors) - _MOST_ERRORS)
        more = (f"and {unsaid} more errors",) if unsaid else ()
        return (*self._errors[:_MOST_ERRORS], *more)

    def refuse(self, key: str, expected: str) -> None:
        """Note that the value of ``key`` is none that is allowed."""
        shown = _shown(self._values[key]) if key in self._values else "missing"
        self._errors.append(f"{self._name}.{key} is {shown}: write {expected}")

    def whole(self, key: str) -> int | None:
        """Return a whole number from 0; None when absent or wrong. ``true`` is not a number."""
        value = self._values.get(key)
        if type(value) is int and value >= 0:
            return value
        if key in self._values:
            self.refuse(key, "a whole number from 0, without quotes, such as 3")
        return None

    def flag(self, key: str) -> bool:
        """Return true or false; false when absent or wrong."""
        value = self._values.get(key, False)
        if not isinstance(value, bool):
            self.refuse(key, "true or false, without quotes")
        return value is True

    def text(self, key: str, expected: str) -> str:
        """Return a text that can be printed; empty when absent or wrong."""
        value = self._values.get(key, "")
        if isinstance(value, str) and len(value) <= _MOST_PATH and _is_plain(value):
            return value
        self.refuse(key, expected)
        return ""


def _claim_of(comment: str) -> _Claim:
    if len(comment) > MOST_COMMENT:
        return _broken(
            f"the job's comment has {len(comment)} characters: "
            f"one of more than {MOST_COMMENT} is not read"
        )
    is_meant = _MENTION.search(comment) is not None
    try:
        value = json.loads(comment, object_pairs_hook=_Object)
    except json.JSONDecodeError as error:
        wrong = f"is not JSON: {error.msg} at character {error.pos + 1}"
    except RecursionError:
        wrong = "is nested too deeply to be read"
    except ValueError:
        wrong = "holds a number that is too long to be read"
    else:
        if isinstance(value, _Object):
            return _claim_of_object(value)
        wrong = f"is {_shown(value)}, not a JSON object"
    if not is_meant:
        return _Claim(speaks=False)
    return _broken(f"the job's comment {wrong}; write {_EXAMPLE}")


def _broken(error: str) -> _Claim:
    return _Claim(errors=(error,))


def _claim_of_object(comment: _Object) -> _Claim:
    twice = [name for name in ("relight", "APS") if name in comment.repeated]
    if twice:
        return _broken(f"{twice[0]} is written more than once in the job's comment: write it once")
    if "relight" in comment:
        return _claim_of_relight(comment["relight"], has_aps="APS" in comment)
    if "APS" in comment:
        return _claim_of_aps(comment["APS"])
    for key in comment:
        for name in ("relight", "APS"):
            if key.casefold() == name.casefold():
                return _broken(f'{quoted(key)} is not a key: did you mean "{name}"?')
    strange = next((key for key in comment if did_you_mean(key, ("relight",))), None)
    if strange is None:
        return _Claim(speaks=False)
    note = f'the job\'s comment has the key {quoted(strange)}: did you mean "relight"?'
    return _Claim(speaks=False, notes=(note,))


def _claim_of_relight(value: object, *, has_aps: bool) -> _Claim:
    if isinstance(value, bool):
        return _Claim(opts_out=not value)
    if not isinstance(value, _Object):
        return _broken(f"relight is {_shown(value)}: write an object, such as {_EXAMPLE}")
    part = _Part("relight", value, COMMENT_KEYS)
    path = f"a path of at most {_MOST_PATH} printable characters"
    return _Claim(
        opts_out=part.flag("opt_out"),
        policy=part.text("policy", "the name of a policy, such as default"),
        max_restarts=part.whole("max_restarts"),
        logs=part.text("logs", path),
        checkpoint=part.text("checkpoint", path),
        flight_recorder=part.text("flight_recorder", path),
        errors=part.errors(),
        notes=("APS is not read, because relight stands beside it",) if has_aps else (),
    )


def _claim_of_aps(value: object) -> _Claim:
    if not isinstance(value, _Object):
        return _broken(f'APS is {_shown(value)}: write {{"auto_resume_mode": "requeue"}}')
    part = _Part("APS", value, APS_KEYS)
    if value.get("auto_resume_mode") != "requeue":
        part.refuse("auto_resume_mode", 'the only mode that is known here, "requeue"')
    return _Claim(max_restarts=part.whole("max_requeue_times"), errors=part.errors())


def _narrowed(asked: int | None, policy: Policy) -> tuple[int | None, tuple[str, ...]]:
    """Return the restarts that the user asked for as far as the policy goes, and a note."""
    if asked is None or asked <= policy.max_restarts:
        return asked, ()
    note = (
        f"the job's comment asks for {_shown(asked)} restarts; policy {policy.name} allows "
        f"{policy.max_restarts}, and that holds"
    )
    return policy.max_restarts, (note,)


def _no_such_policy(name: str, book: PolicyBook, *, by_comment: bool) -> str:
    who = "relight.policy" if by_comment else "the operator's opt-in"
    names = [policy.name for policy in book.policies]
    guess = did_you_mean(name, names)
    known = ", ".join(names[:_MOST_ERRORS]) or "none"
    hint = f'did you mean "{guess}"?' if guess else f"known are {known}"
    return f"{who} names the policy {quoted(name)}, which does not exist: {hint}"


def _matches(pattern: str, name: str) -> bool:
    # fnmatch translates each star into an atomic group: no backtracking over a hostile name
    return not pattern or pattern == name or fnmatchcase(name, pattern)


def _is_plain(text: str) -> bool:
    # a lone surrogate or a NUL would break whoever stores the text or opens the path
    return text.isprintable()


def _shown(value: object) -> str:
    """Return a JSON value for a sentence, bounded."""
    match value:
        case bool() | None:
            return json.dumps(value)
        case str():
            return f"the text {quoted(value)}"
        case int() if value.bit_length() > _MOST_SHOWN:
            return "a very large number"
        case int() | float():
            return f"{value}"
        case dict():
            return "an object"
        case _:
            return "a list"
