"""A session's events as the editor is shown them."""

from acp.schema import TextContentBlock, UserMessageChunk

from hark.protocol.events import (
    AnyEvent,
    CallEnd,
    CallOutput,
    CallStart,
    MessageAccepted,
    Notice,
    ReasoningDelta,
    ReplyDelta,
    ReplyRestarted,
    RouteChanged,
    TurnEnd,
)
from hark.protocol.outcomes import Interrupted, LimitReached
from hark.protocol.session import Session
from hark.surfaces.acp.live_output import LiveOutput
from hark.surfaces.acp.plan import as_plan
from hark.surfaces.acp.tool_calls import ShownCall, todo_items
from hark.surfaces.acp.update_queue import UpdateQueue

RESTARTED = "The connection broke: the reply starts anew."


class View:
    """Turns events into updates; it never waits."""

    def __init__(self, session: Session, folder: str, outbox: UpdateQueue) -> None:
        self._session = session
        self._folder = folder
        self._outbox = outbox
        self._calls: dict[str, ShownCall] = {}
        self._outputs: dict[str, LiveOutput] = {}

    def show(self, event: AnyEvent) -> None:
        """Show what an event tells."""
        match event:
            case ReplyDelta(text=text):
                self._outbox.say(text)
            case ReasoningDelta(text=text):
                self._outbox.say(text, is_thought=True)
            case ReplyRestarted():
                self._note(RESTARTED)
            case RouteChanged(route=route, reason=reason):
                self._note(f"{route} serves now: {reason}")
            case Notice(text=text):
                self._note(text)
            case CallStart():
                self._start(event)
            case CallOutput(call=call, text=text):
                if call in self._outputs:
                    self._outputs[call].add(text)
            case CallEnd():
                self._end(event)
            case TurnEnd():
                self._end_turn(event)
            case _:
                pass

    def show_message(self, event: MessageAccepted) -> None:
        """Show a message that came by another way than this editor."""
        content = TextContentBlock(type="text", text=event.text)
        self._outbox.put(UserMessageChunk(session_update="user_message_chunk", content=content))

    def ask_about(self, call: str) -> ShownCall:
        """Return a call that a question is about; it is shown from now on."""
        known = self._calls.get(call)
        if known is None:
            asked = self._session.call(call)
            known = ShownCall(call, asked.name if asked else "question", asked.arguments if asked else "", self._folder)
            self._calls[call] = known
            self._outbox.put(known.begin("pending"))
        return known

    def close(self) -> None:
        """Show no more."""
        for output in self._outputs.values():
            output.close()
        self._outputs.clear()

    def _start(self, event: CallStart) -> None:
        call = self._calls.get(event.call)
        if call is None:
            call = self._calls[event.call] = ShownCall(event.call, event.name, event.arguments, self._folder)
            self._outbox.put(call.begin("in_progress"))
        else:
            self._outbox.put(call.started())
        self._outputs[event.call] = LiveOutput(lambda text: self._outbox.print(call, text))
        items = todo_items(event.name, event.arguments)
        if items is not None:
            self._outbox.put(as_plan(items))

    def _end(self, event: CallEnd) -> None:
        output = self._outputs.pop(event.call, None)
        if output is not None:
            output.close()
        call = self._calls.pop(event.call, None)
        if call is None:  # it never started: there was no such tool, or it may not run
            call = ShownCall(event.call, event.name, "", self._folder)
            self._outbox.put(call.begin("pending"))
        self._outbox.put(call.ended(event.text, event.effect, is_error=event.is_error))

    def _end_turn(self, event: TurnEnd) -> None:
        match event.outcome:
            case LimitReached(message=message):
                self._outbox.say(f"\n\n[{message}]")
            case Interrupted(left_running=left) if left:
                self._note(f"This could not be stopped and still runs: {', '.join(left)}")
            case _:
                pass
        self._calls.clear()
        self.close()

    def _note(self, text: str) -> None:
        self._outbox.say(f"{text}\n", is_thought=True)
