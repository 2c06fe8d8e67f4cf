"""Checks a call before it runs: the tool exists, its arguments are valid, and the user allows it."""

from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import structs

from hark.engine.services import EngineServices, Tools
from hark.engine.session.journal_writer import JournalWriter
from hark.engine.turn.approvals import ApprovalDecision, ApprovalPolicy, CallForecast, decide_approval
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.turn_io import TurnIO
from hark.protocol.events import Notice
from hark.protocol.messages import Call
from hark.protocol.records import Granted
from hark.protocol.tool import NoUserToAsk, Question, QuestionKind, Tool, ToolError
from hark.text.lenient_json import explain_invalid

YES = "yes"
SESSION = "session"
ALWAYS = "always"
NO = "no"
_YES_ANSWERS = (YES, "y", "once", "allow", "ok")
DENIED = "This is denied by the rules on this machine."
MAX_DECLINES = 3  # in one turn, before the user is asked for an instruction
WHAT_INSTEAD = "You declined {} calls in this turn. What should the agent do instead?"
NO_VARIANTS = "Do not try a variant of the refused calls. Report the unfinished work, and end your turn."
_ARGUMENTS = msgspec.json.Decoder(dict[str, object])


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that is ready to run once it is approved: its tool was found and its arguments are decoded."""

    call: Call
    tool: Tool
    arguments: Any
    forecast: CallForecast
    needs_approval: bool  # the user must approve it first


class CallGate:
    """Checks and approves a turn's calls. Refusals are messages to the model."""

    def __init__(self, services: EngineServices, journal: JournalWriter, io: TurnIO, timeline: Timeline) -> None:
        self._services = services
        self._journal = journal
        self._io = io
        self._timeline = timeline
        self._refusals = 0  # since the user last gave an instruction
        self._is_redirected = False

    def pop_redirection(self) -> bool:
        """Return whether the last refusal contains the user's instruction for the rest of the turn. Resets it."""
        is_redirected, self._is_redirected = self._is_redirected, False
        return is_redirected

    async def prepare(self, call: Call) -> PreparedCall | str:
        """Return the call ready to run, or the reason why it can't run. Safe to cancel."""
        tool = self._services.tools.get(call.name)
        if tool is None:
            names = ", ".join(spec.name for spec in self._services.tools.specs)
            return f"There is no tool named {call.name!r}. The tools are: {names}."
        if call.broken:
            return explain_invalid(call.broken)
        given = _ARGUMENTS.decode(call.arguments)
        try:
            arguments = self._services.tools.decode(tool.spec, given)
        except ToolError as error:
            return str(error)
        forecast = await self._predict(tool, arguments, str(given.get("command", "")))
        decision = decide_approval(self._policy(), forecast)
        if decision is ApprovalDecision.DENY:
            return DENIED
        return PreparedCall(call, tool, arguments, forecast, decision is ApprovalDecision.ASK)

    async def _predict(self, tool: Tool, arguments: Any, command: str) -> CallForecast:
        spec, workspace = tool.spec, self._services.workspace
        effects = spec.predict_effects(arguments)
        folder = spec.folder_of(self._io.session) if spec.folder_of else None
        writable = self._services.rules.approvals.writable
        assessment = await self._services.analyzer.analyze(effects, workspace, folder, writable)
        return CallForecast(spec.name, effects.subject or command, effects, assessment)

    async def approve(self, prepared: PreparedCall) -> str:
        """Ask the user for approval; cancelling withdraws the question. Return the refusal, or "" if the call may
        run.
        """
        call, forecast = prepared.call, prepared.forecast
        # Decide again, because the previous answer may have allowed this call as well.
        decision = decide_approval(self._policy(), forecast)
        if decision is not ApprovalDecision.ASK:
            return DENIED if decision is ApprovalDecision.DENY else ""
        reasons = forecast.assessment.reasons
        shown = msgspec.json.format(msgspec.json.encode(prepared.arguments), indent=0).decode()
        text = "\n".join([f"Run {call.name} with {shown}?", *reasons])
        choices = (YES, SESSION, ALWAYS, NO) if forecast.grant else (YES, NO)
        try:
            with self._timeline.span("question", call.name):
                question = Question(text, choices, QuestionKind.APPROVAL)
                answer = await self._io.questions.ask(question, call.id)
        except NoUserToAsk:
            reason = "; ".join(reasons)
            refusal = (
                f"This needs the user's approval, but no user is available.{f' Reason: {reason}.' if reason else ''}"
            )
            self._refusals += 1
            return refusal if self._refusals < MAX_DECLINES else f"{refusal} {NO_VARIANTS}"
        if await self._is_allowed_by(answer, forecast.grant):
            return ""
        return await self._decline(f"The user declined this. Their answer: {answer}", call.id)

    async def _decline(self, refusal: str, call: str) -> str:
        """Return the refusal. After MAX_DECLINES refusals in the turn, ask the user what to do and add the answer."""
        self._refusals += 1
        if self._refusals < MAX_DECLINES:
            return refusal
        count, self._refusals = self._refusals, 0
        try:
            with self._timeline.span("question", "instruction"):
                instruction = await self._io.questions.ask(Question(WHAT_INSTEAD.format(count)), call)
        except NoUserToAsk:
            self._is_redirected = True
            return f"{refusal}\nThe user declined {count} calls in this turn. {NO_VARIANTS}"
        self._is_redirected = True
        return f"{refusal}\nThe user was asked what to do instead. Follow this answer: {instruction}"

    async def _is_allowed_by(self, answer: str, grant: str) -> bool:
        """Return whether an answer allows the call. Store the grant that it gives for later calls."""
        choice = answer.strip().lower()
        if choice in (SESSION, ALWAYS) and grant:
            self._journal.append(Granted(grant=grant, at=self._services.clock.now()))
            if choice == ALWAYS:
                await self._save_grant(grant)
            return True
        return choice in _YES_ANSWERS

    async def _save_grant(self, grant: str) -> None:
        try:
            await self._services.grants.add(grant)
        except OSError as error:
            text = f"{grant} is allowed in this session, but could not be saved for later sessions: {error}"
            self._io.fanout.emit(Notice, self._io.turn, "grant", text)

    def _policy(self) -> ApprovalPolicy:
        approvals = self._services.rules.approvals
        state = self._journal.state
        return ApprovalPolicy(approvals, state.mode or approvals.mode, {*state.grants, *self._services.grants.all})


def normalize_call(tools: Tools, call: Call) -> Call:
    """Return the call with the names and types of its tool's arguments, so that its record shows the real values.

    A call whose arguments are valid, or can't be decoded, is returned unchanged.
    """
    tool = tools.get(call.name)
    if tool is None or call.broken:
        return call
    given = _ARGUMENTS.decode(call.arguments)
    try:
        encoded = msgspec.json.encode(tools.decode(tool.spec, given))
    except ToolError:
        return call
    is_same = all(name in given and given[name] == value for name, value in _ARGUMENTS.decode(encoded).items())
    return call if is_same else structs.replace(call, arguments=encoded.decode())
