"""What a line's level says of it: that it was only a warning, or nothing at all.

A level belongs to the words behind it. But launchers, collectors and loggers put their own in
front of what another program printed, and stderr as a whole is often called a warning or a
piece of information: so a level counts only where the words behind it do not say more.
"""

from __future__ import annotations

import re

_HEAD = 120
"""Characters in which loggers name the level of a line."""
_BODY = 600
"""Characters behind the level that are looked at."""
_WARNING = re.compile(
    r"(?<!NCCL )(?<!\()\bWARN(?:ING)?\b|\b[A-Za-z]+Warning\b|(?<!\()\bWarning:|^\[?W\d{4} "
)
_INFORMATION = re.compile(r"(?<!NCCL )\bINFO\b|^\[?I\d{4} ")
_SAYS_MORE_THAN_WARNING = re.compile(
    r"(?i)NCCL WARN|\berror\b|\bfatal\b|\bcritical\b|Error: |\bTraceback \("
    r"|\bKilled process|\bcore dumped|\bSignal: |\bNVRM: Xid|^\W{0,3}\[?[EF]\d{4} "
)
_SAYS_MORE_THAN_INFORMATION = re.compile(
    r"(?i)NCCL WARN|error|fail|fatal|critical|exception|traceback|abort|assert|crash|kill"
    r"|terminat|\bsignal\b|\bSIG[A-Z]{3,4}\b|fault|violation|corrupt|invalid|mismatch|denied|refused"
    r"|reset by|closed|lost|\bdead\b|\bdied\b|\bhung\b|stuck|stall|straggl|unreachable|unable"
    r"|cannot|can't|could not|not found|no such|missing|out of memory|exceed|timed? ?out|evict"
    r"|low on|exit|cancel|preempt|\bXid\b|hangup|unavailable|not initiali[sz]ed|divergen|\bnan\b"
)

_GOES_ON = re.compile(
    r"(?i)\bretrying|\bwill retry|\b(?:try|trying) again|\bfalling back|\bskipping"
    r"|\bignoring|ignored\b"
)

_LEVELS = ("WARN", "Warning", "INFO")
_GLOG = frozenset({"W", "I"})


def is_mere_remark(line: str, *, tells_a_cause: bool = False) -> bool:
    """Tell whether a line calls itself a warning or a piece of information, and is no more.

    The innermost level counts, and what stands behind it. A line of which it is known that it
    ``tells_a_cause`` does not become harmless by being called a piece of information.
    """
    head = line[:_HEAD]
    if not any(word in head for word in _LEVELS) and line.lstrip("[")[:1] not in _GLOG:
        return False
    warning, information = _end_of(_WARNING, head), _end_of(_INFORMATION, head)
    body = line[max(warning, information) :][:_BODY]
    if warning > information:
        return _SAYS_MORE_THAN_WARNING.search(body) is None
    if information < 0:
        return False
    if _GOES_ON.search(body):
        return True
    return not tells_a_cause and _SAYS_MORE_THAN_INFORMATION.search(body) is None


def _end_of(level: re.Pattern[str], head: str) -> int:
    """Return where the last of these levels ends, -1 where there is none."""
    return max((match.end() for match in level.finditer(head)), default=-1)
