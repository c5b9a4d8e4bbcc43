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


def is_mere_remark(line: str) -> bool:
    """Tell whether a line calls itself a warning or a piece of information, and is no more.

    The innermost level counts, and what stands behind it.
    """
    warning = _last(_WARNING, line)
    information = _last(_INFORMATION, line)
    if warning is None and information is None:
        return False
    body_of_warning = -1 if warning is None else warning.end()
    body_of_information = -1 if information is None else information.end()
    if body_of_warning > body_of_information:
        says_more, begins = _SAYS_MORE_THAN_WARNING, body_of_warning
    else:
        says_more, begins = _SAYS_MORE_THAN_INFORMATION, body_of_information
    body = line[begins : begins + _BODY]
    if says_more is _SAYS_MORE_THAN_INFORMATION and _GOES_ON.search(body):
        return True
    return says_more.search(body) is None


def _last(level: re.Pattern[str], line: str) -> re.Match[str] | None:
    return max(level.finditer(line, 0, _HEAD), key=re.Match.end, default=None)
