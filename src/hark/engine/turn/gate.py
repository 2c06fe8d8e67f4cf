"""Before a call: is there such a tool, are its arguments right, and does its person allow it?"""

from dataclasses import dataclass
from typing import Any

import msgspec

from hark.engine.services import EngineServices
from hark.engine.session.log import Log
from hark.engine.turn.approvals import ApprovalDecision, CallForecast, Consent, decide
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.turn_io import TurnIO
from hark.protocol.events import Notice
from hark.protocol.messages import Call
from hark.protocol.records import Granted
from hark.protocol.tool import NobodyToAsk, Question, QuestionKind, Tool, ToolError

YES = "yes"
SESSION = "session"
ALWAYS = "always"
NO = "no"
_YES_WORDS = (YES, "y", "once", "allow", "ok")
DENIED = "This is denied by the rules of this machine's owner."
_ARGUMENTS = msgspec.json.Decoder(dict[str, object])


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run once it is allowed: its tool was found, and its arguments are decoded."""

    call: Call
    tool: Tool
    arguments: Any
    forecast: CallForecast
    is_asked: bool  # a person must allow it first


class Gate:
    """Lets a turn's calls through, or says why not, in words for the model."""

    def __init__(self, bench: EngineServices, log: Log, lines: TurnIO, timeline: Timeline) -> None:
        self._bench = bench
        self._log = log
        self._lines = lines
        self._timeline = timeline

    async def prepare(self, call: Call) -> Prepared | str:
        """Return the call as it would run, or why it does not. Safe to cancel."""
        tool = self._bench.tools.get(call.name)
        if tool is None:
            names = ", ".join(spec.name for spec in self._bench.tools.specs)
            return f"There is no tool named {call.name!r}. The tools are: {names}."
        if call.broken:
            return f"The arguments are not a JSON object: {call.broken[:200]!r}. Send them again."
        given = _ARGUMENTS.decode(call.arguments)
        try:
            arguments = self._bench.tools.decode(tool.spec, given)
        except ToolError as error:
            return str(error)
        forecast = await self._forecast(tool, arguments, str(given.get("command", "")))
        decision = decide(self._consent(), forecast)
        if decision is ApprovalDecision.DENY:
            return DENIED
        return Prepared(call, tool, arguments, forecast, decision is ApprovalDecision.ASK)

    async def _forecast(self, tool: Tool, arguments: Any, command: str) -> CallForecast:
        spec, workspace = tool.spec, self._bench.workspace
        foreseen = spec.foreseen(arguments)
        folder = spec.folder_of(self._lines.session) if spec.folder_of else None
        writable = self._bench.rules.approvals.writable
        judged = await self._bench.analyzer.analyze(foreseen, workspace, folder, writable)
        return CallForecast(spec.name, foreseen.subject or command, foreseen, judged)

    async def approve(self, prepared: Prepared) -> str:
        """Ask the person; return why the call does not run, or "" when it may. Cancelling withdraws the question."""
        call, forecast = prepared.call, prepared.forecast
        # Decide once more: the answer to the question before may have allowed this as well.
        decision = decide(self._consent(), forecast)
        if decision is not ApprovalDecision.ASK:
            return DENIED if decision is ApprovalDecision.DENY else ""
        reasons = forecast.judged.reasons
        text = "\n".join([f"Run {call.name} with {call.arguments}?", *reasons])
        choices = (YES, SESSION, ALWAYS, NO) if forecast.grant else (YES, NO)
        try:
            with self._timeline.span("question", call.name):
                question = Question(text, choices, QuestionKind.APPROVAL)
                answer = await self._lines.questions.ask(question, call.id)
        except NobodyToAsk:
            why = "; ".join(reasons)
            return f"This needs a person's approval, and nobody is there to give it.{f' Why: {why}.' if why else ''}"
        return await self._take(answer, forecast.grant)

    async def _take(self, answer: str, grant: str) -> str:
        word = answer.strip().lower()
        if word in _YES_WORDS:
            return ""
        if word in (SESSION, ALWAYS) and grant:
            self._log.append(Granted(grant=grant, at=self._bench.clock.now()))
            if word == ALWAYS:
                await self._remember(grant)
            return ""
        return f"The person did not allow this. They answered: {answer}"

    async def _remember(self, grant: str) -> None:
        try:
            await self._bench.grants.remember(grant)
        except OSError as error:
            text = f"{grant} is allowed in this session, but could not be kept for later ones: {error}"
            self._lines.fanout.emit(Notice, self._lines.turn, "grant", text)

    def _consent(self) -> Consent:
        approvals = self._bench.rules.approvals
        state = self._log.state
        return Consent(approvals, state.mode or approvals.mode, {*state.grants, *self._bench.grants.known})
