"""Decides whether a call needs approval, from the mode, the rules and the call's predicted effects."""

from collections.abc import Collection, Sequence
from enum import Enum
from fnmatch import fnmatchcase

from msgspec import Struct

from hark.protocol.rules import ApprovalMode, Approvals
from hark.protocol.tool import PredictedEffects, Risk, RiskAssessment


class ApprovalDecision(Enum):
    """What to do with a call: run it, ask the user, or deny it."""

    RUN = "run"
    ASK = "ask"
    DENY = "deny"


class CallForecast(Struct, frozen=True):
    """The analysed effects of a call, computed once before the user is asked. Rules are matched against `subject`."""

    name: str
    subject: str
    effects: PredictedEffects
    assessment: RiskAssessment

    @property
    def is_changing(self) -> bool:
        """True when the call may change something."""
        return self.assessment.risk > Risk.READING

    @property
    def writes(self) -> tuple[str, ...] | None:
        """The paths that the call may change, or None if they can't be known."""
        return self.effects.writes if self.is_changing else ()

    @property
    def grant(self) -> str:
        """The grant that the user may save for this session or permanently, or "" if this call always needs approval.

        A grant covers this exact command, or the tool as long as it stays in the workspace.
        """
        if self.assessment.risk >= Risk.HARD:
            return ""
        is_exact = bool(self.effects.command) or self.assessment.risk is Risk.LEAVING
        return f"{self.name}:{self.subject}" if is_exact else self.name

    @property
    def irreversible_effect(self) -> str:
        """A short description of the effect that an undo can't revert, or ""."""
        if self.effects.command:
            return f"{self.name}: {self.subject}" if self.assessment.risk >= Risk.LEAVING else ""
        return self.name if self.effects.is_changing and self.effects.writes is None else ""


class ApprovalPolicy(Struct, frozen=True):
    """A session's approval policy: the settings, the current mode, and the grants."""

    approvals: Approvals
    mode: ApprovalMode
    grants: Collection[str]


def decide_approval(policy: ApprovalPolicy, call: CallForecast) -> ApprovalDecision:
    """Decide whether a call runs, needs approval or is denied.

    A denial always wins. Calls on the hard list need approval whatever the rules allow, unless the mode is `all`.
    Writing outside the workspace is allowed by an exact grant or by `writable`, never by a pattern.
    """
    name, assessment = call.name, call.assessment
    command_subjects = [f"{name}:{text}" for text in assessment.commands]
    full_subject = f"{name}:{call.subject}"
    if any(_matches(text, policy.approvals.deny) for text in (name, full_subject, *command_subjects)):
        return ApprovalDecision.DENY
    if policy.mode is ApprovalMode.ALL or assessment.risk is Risk.READING:
        return ApprovalDecision.RUN
    if assessment.risk >= Risk.HARD:
        return ApprovalDecision.ASK
    if full_subject in policy.grants:
        return ApprovalDecision.RUN
    if assessment.risk is Risk.LEAVING:
        return ApprovalDecision.ASK
    # A pattern such as `git *` would match `git status; rm -r x` as a whole, so each command must be allowed.
    subjects = command_subjects if call.effects.command else [full_subject]
    is_allowed = bool(subjects) and all(_matches(text, policy.approvals.allow) for text in subjects)
    if assessment.risk is Risk.CHANGING:
        is_default = policy.mode is ApprovalMode.AUTO or name in policy.grants
        is_allowed = is_allowed or is_default or _matches(name, policy.approvals.allow)
    return ApprovalDecision.RUN if is_allowed else ApprovalDecision.ASK


def _matches(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
