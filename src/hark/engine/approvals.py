"""Whether a person is asked before a call, by mode and by rules."""

import re
from collections.abc import Mapping
from enum import Enum
from fnmatch import fnmatchcase
from typing import Any

from hark.protocol.rules import ApprovalMode, Approvals
from hark.protocol.tool import ToolSpec


class Verdict(Enum):
    """What to do with a call."""

    RUN = "run"
    ASK = "ask"
    DENY = "deny"


# A first, coarse list of what is asked in `auto`: it errs on the side of asking.
_DANGEROUS = re.compile(
    r"""
    \brm\s+(-\w*\s+)*-\w*[rRf]              # recursive or forced removal
    | \b(mkfs|fdisk|parted|shutdown|reboot|halt|poweroff|wipefs|shred)\b
    | \bdd\b.*\bof=
    | >\s*/dev/(?!null|stdout|stderr|tty)
    | :\s*\(\s*\)\s*\{                      # a fork bomb
    | \b(curl|wget)\b.*\|\s*(sudo\s+)?\w*sh\b
    | \b(sudo|doas|su)\b
    | \bgit\s+push\b.*(\s-f\b|--force|\s\+)
    | \bgit\s+(reset\s+--hard|clean\s+-\w*f)
    | \bchmod\s+(-\w+\s+)*0?777\b | \bch(mod|own|grp)\s+-\w*R
    | >>?\s*(/|~|\$HOME)(?!dev/null|tmp/) | \b(mv|cp|install|ln|tee)\b.*\s(/(?!tmp/|dev/null)|~|\$HOME)
    | \b(eval|crontab|systemctl|launchctl|killall|pkill)\b | \bkill\s+(-\w+\s+)?-1\b
    """,
    re.VERBOSE,
)


def verdict(approvals: Approvals, spec: ToolSpec, arguments: Mapping[str, Any]) -> Verdict:
    """Decide about one call. A denial always wins; an allowance wins over the mode."""
    subject = f"{spec.name}:{arguments.get('command', '')}"
    if any(fnmatchcase(subject, pattern) for pattern in approvals.deny):
        return Verdict.DENY
    if approvals.mode is ApprovalMode.ALL or not spec.is_changing:
        return Verdict.RUN
    if any(fnmatchcase(subject, pattern) for pattern in approvals.allow):
        return Verdict.RUN
    if approvals.mode is ApprovalMode.AUTO and not _is_dangerous(arguments):
        return Verdict.RUN
    return Verdict.ASK


def _is_dangerous(arguments: Mapping[str, Any]) -> bool:
    command = arguments.get("command")
    return isinstance(command, str) and _DANGEROUS.search(command) is not None
