"""Whether a person is asked before a call, by mode, by rules, and by what the call would do."""

from collections.abc import Collection, Sequence
from enum import Enum
from fnmatch import fnmatchcase

from msgspec import Struct

from hark.protocol.rules import ApprovalMode, Approvals
from hark.protocol.tool import Foreseen, Judgement, Risk


class ApprovalDecision(Enum):
    """What to do with a call."""

    RUN = "run"
    ASK = "ask"
    DENY = "deny"


class CallForecast(Struct, frozen=True):
    """What a call would do, found out once, before anybody is asked. `subject` is what rules are matched with."""

    name: str
    subject: str
    foreseen: Foreseen
    judged: Judgement

    @property
    def is_changing(self) -> bool:
        """True when it may change something."""
        return self.judged.risk > Risk.READING

    @property
    def writes(self) -> tuple[str, ...] | None:
        """The paths that it may change, None when they can't be known."""
        return self.foreseen.writes if self.is_changing else ()

    @property
    def grant(self) -> str:
        """What a person may allow for longer than once, "" when this is asked every time.

        A grant covers this very command, or the tool as long as it stays in the workspace.
        """
        if self.judged.risk >= Risk.HARD:
            return ""
        is_exact = bool(self.foreseen.command) or self.judged.risk is Risk.LEAVING
        return f"{self.name}:{self.subject}" if is_exact else self.name

    @property
    def stays(self) -> str:
        """What an undo can't bring back, in a few words; "" for nothing."""
        if self.foreseen.command:
            return f"{self.name}: {self.subject}" if self.judged.risk >= Risk.LEAVING else ""
        return self.name if self.foreseen.is_changing and self.foreseen.writes is None else ""


class Consent(Struct, frozen=True):
    """What a session's person has said about approvals: the settings, the mode in force, and grants."""

    approvals: Approvals
    mode: ApprovalMode
    grants: Collection[str]


def decide(consent: Consent, call: CallForecast) -> ApprovalDecision:
    """Decide about one call.

    A denial always wins. What is on the hard list is asked whatever the rules allow, unless the mode is `all`. Writing
    outside the workspace is allowed by an exact grant or by `writable`, never by a pattern.
    """
    name, judged = call.name, call.judged
    parts = [f"{name}:{text}" for text in judged.commands]
    whole = f"{name}:{call.subject}"
    if any(_matches(text, consent.approvals.deny) for text in (name, whole, *parts)):
        return ApprovalDecision.DENY
    if consent.mode is ApprovalMode.ALL or judged.risk is Risk.READING:
        return ApprovalDecision.RUN
    if judged.risk >= Risk.HARD:
        return ApprovalDecision.ASK
    if whole in consent.grants:
        return ApprovalDecision.RUN
    if judged.risk is Risk.LEAVING:
        return ApprovalDecision.ASK
    # A pattern such as `git *` would fit `git status; rm -r x` as a whole: each command of it must be allowed.
    named = parts if call.foreseen.command else [whole]
    is_allowed = bool(named) and all(_matches(text, consent.approvals.allow) for text in named)
    if judged.risk is Risk.CHANGING:
        is_usual = consent.mode is ApprovalMode.AUTO or name in consent.grants
        is_allowed = is_allowed or is_usual or _matches(name, consent.approvals.allow)
    return ApprovalDecision.RUN if is_allowed else ApprovalDecision.ASK


def _matches(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
