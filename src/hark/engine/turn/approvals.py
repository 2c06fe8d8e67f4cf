"""Whether a person is asked before a call, by mode, by rules, and by what the call would do."""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct

from hark.command_safety.following.findings import Judgement, Risk
from hark.protocol.rules import ApprovalMode, Approvals
from hark.protocol.tool import Foreseen, ToolSpec


class ApprovalDecision(Enum):
    """What to do with a call."""

    RUN = "run"
    ASK = "ask"
    DENY = "deny"


class Ruling(Struct, frozen=True):
    """What was decided about a call, and what it would do.

    `grant` is what a person may allow for longer than once, "" when this is asked every time. `writes` is as in
    Foreseen; `stays` names what no undo brings back.
    """

    verdict: ApprovalDecision
    is_changing: bool
    reasons: tuple[str, ...] = ()
    grant: str = ""
    writes: tuple[str, ...] | None = ()
    stays: str = ""


class Consent(Struct, frozen=True):
    """What a session's person has said about approvals: the settings, the mode in force, and grants."""

    approvals: Approvals
    mode: ApprovalMode
    grants: Collection[str]


def rule(consent: Consent, spec: ToolSpec, arguments: Mapping[str, Any], session: str, workspace: Path) -> Ruling:
    """Decide about one call.

    A denial always wins. What is on the hard list is asked whatever the rules allow, unless the mode is `all`. Writing
    outside the workspace is allowed by an exact grant or by `writable`, never by a pattern.
    """
    foreseen = spec.foreseen(arguments)
    judged = _judge(spec, foreseen, session, workspace, consent.approvals.writable)
    subject = foreseen.subject or str(arguments.get("command", ""))
    verdict = _verdict(consent, spec.name, subject, judged, is_command=bool(foreseen.command))
    return Ruling(
        verdict,
        judged.risk > Risk.READING,
        judged.reasons,
        "" if judged.risk >= Risk.HARD else _grant(spec.name, subject, judged, foreseen),
        foreseen.writes if judged.risk > Risk.READING else (),
        _stays(spec.name, subject, judged, foreseen),
    )


def _judge(spec: ToolSpec, foreseen: Foreseen, session: str, workspace: Path, writable: Sequence[str]) -> Judgement:
    folders = tuple(Path(folder).expanduser() for folder in writable)
    if foreseen.command:
        from hark.command_safety.analysis import judge  # not before the first command: it is large

        folder = spec.folder_of(session) if spec.folder_of else None
        return judge(foreseen.command, workspace, folder=folder, writable=folders)
    outside = [path for path in foreseen.writes or () if _is_outside(path, workspace, folders)]
    if outside:
        return Judgement(Risk.LEAVING, tuple(f"writes to {path}, outside the workspace" for path in outside), ())
    return Judgement(Risk.CHANGING if foreseen.is_changing else Risk.READING, (), ())


def _is_outside(path: str, workspace: Path, writable: Sequence[Path]) -> bool:
    """Tell whether a path, links followed, leads out of all that may be written to."""
    try:
        real = (workspace / Path(path).expanduser()).resolve()
        return not any(real.is_relative_to(folder.resolve()) for folder in (workspace, *writable))
    except (OSError, RuntimeError, ValueError):  # a loop of links, a home that nobody has: nobody can tell
        return True


def _verdict(consent: Consent, name: str, subject: str, judged: Judgement, *, is_command: bool) -> ApprovalDecision:
    parts = [f"{name}:{text}" for text in judged.commands]
    whole = f"{name}:{subject}"
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
    named = [*parts] if is_command else [whole]
    is_allowed = bool(named) and all(_matches(text, consent.approvals.allow) for text in named)
    if judged.risk is Risk.CHANGING:
        is_usual = consent.mode is ApprovalMode.AUTO or name in consent.grants
        is_allowed = is_allowed or is_usual or _matches(name, consent.approvals.allow)
    return ApprovalDecision.RUN if is_allowed else ApprovalDecision.ASK


def _matches(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def _grant(name: str, subject: str, judged: Judgement, foreseen: Foreseen) -> str:
    """Return what a grant would cover: this very command, or the tool as long as it stays in the workspace."""
    is_exact = bool(foreseen.command) or judged.risk is Risk.LEAVING
    return f"{name}:{subject}" if is_exact else name


def _stays(name: str, subject: str, judged: Judgement, foreseen: Foreseen) -> str:
    """Return what an undo can't bring back, in a few words."""
    if foreseen.command:
        return f"{name}: {subject}" if judged.risk >= Risk.LEAVING else ""
    return name if foreseen.is_changing and foreseen.writes is None else ""
