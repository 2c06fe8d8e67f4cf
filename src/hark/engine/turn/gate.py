"""Before a call: is there such a tool, are its arguments right, and does its person allow it?"""

from dataclasses import dataclass

import msgspec

from hark.engine.services import EngineServices
from hark.engine.session.log import Log
from hark.engine.turn.approvals import ApprovalDecision, Consent, Ruling, rule
from hark.engine.turn.timeline import Timeline
from hark.engine.turn.turn_io import TurnIO
from hark.protocol.events import Notice
from hark.protocol.messages import Call
from hark.protocol.records import Granted
from hark.protocol.tool import NobodyToAsk, Question, QuestionKind, Tool

YES = "yes"
SESSION = "session"
ALWAYS = "always"
NO = "no"
_YES_WORDS = (YES, "y", "once", "allow", "ok")
_ARGUMENTS = msgspec.json.Decoder(dict[str, object])


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call that may run as soon as its ruling is met: its tool was found, and its arguments are right."""

    call: Call
    tool: Tool
    arguments: dict[str, object]
    ruling: Ruling

    @property
    def is_asked(self) -> bool:
        """True when a person must allow it first."""
        return self.ruling.verdict is ApprovalDecision.ASK


class Gate:
    """Lets a turn's calls through, or says why not, in words for the model."""

    def __init__(self, bench: EngineServices, log: Log, lines: TurnIO, timeline: Timeline) -> None:
        self._bench = bench
        self._log = log
        self._lines = lines
        self._timeline = timeline

    def look(self, call: Call) -> Prepared | str:
        """Return the call as it would run, or why it does not."""
        tool = self._bench.tools.get(call.name)
        if tool is None:
            names = ", ".join(spec.name for spec in self._bench.tools.specs)
            return f"There is no tool named {call.name!r}. The tools are: {names}."
        if call.broken:
            return f"The arguments are not a JSON object: {call.broken[:200]!r}. Send them again."
        arguments = _ARGUMENTS.decode(call.arguments)
        wrong = self._bench.tools.check(tool.spec, arguments)
        if wrong:
            return wrong
        ruling = rule(self._consent(), tool.spec, arguments, self._lines.session, self._bench.workspace)
        if ruling.verdict is ApprovalDecision.DENY:
            return "This is denied by the rules of this machine's owner."
        return Prepared(call, tool, arguments, ruling)

    async def approve(self, prepared: Prepared) -> str:
        """Ask the person; return why the call does not run, or "" when it may. Cancelling withdraws the question."""
        call = prepared.call
        if not self._is_still_asked(prepared):
            return ""
        text = "\n".join([f"Run {call.name} with {call.arguments}?", *prepared.ruling.reasons])
        choices = (YES, SESSION, ALWAYS, NO) if prepared.ruling.grant else (YES, NO)
        try:
            with self._timeline.span("question", call.name):
                question = Question(text, choices, QuestionKind.APPROVAL)
                answer = await self._lines.questions.ask(question, call.id)
        except NobodyToAsk:
            why = "; ".join(prepared.ruling.reasons)
            return f"This needs a person's approval, and nobody is there to give it.{f' Why: {why}.' if why else ''}"
        return self._take(answer, prepared.ruling.grant)

    def _is_still_asked(self, prepared: Prepared) -> bool:
        """Look once more: the answer to the question before may have allowed this as well."""
        again = self.look(prepared.call)
        return isinstance(again, Prepared) and again.is_asked

    def _take(self, answer: str, grant: str) -> str:
        word = answer.strip().lower()
        if word in _YES_WORDS:
            return ""
        if word in (SESSION, ALWAYS) and grant:
            self._log.append(Granted(grant=grant, at=self._bench.clock.now()))
            if word == ALWAYS:
                self._remember(grant)
            return ""
        return f"The person did not allow this. They answered: {answer}"

    def _remember(self, grant: str) -> None:
        try:
            self._bench.grants.remember(grant)
        except OSError as error:
            text = f"{grant} is allowed in this session, but could not be kept for later ones: {error}"
            self._lines.fanout.emit(Notice, self._lines.turn, "grant", text)

    def _consent(self) -> Consent:
        approvals = self._bench.rules.approvals
        state = self._log.state
        return Consent(approvals, state.mode or approvals.mode, {*state.grants, *self._bench.grants.known})
