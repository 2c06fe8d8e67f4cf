"""A session's events, and its past, as the editor is shown them."""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from acp import (
    image_block,
    update_agent_message_text,
    update_agent_thought_text,
    update_user_message,
    update_user_message_text,
)

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
from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.protocol.outcomes import Interrupted, LimitReached
from hark.protocol.session import Session
from hark.surfaces.acp.tool_calls import ShownCall, plan_in
from hark.surfaces.acp.update_queue import Update, UpdateQueue

PAUSE_SECONDS = 0.1
KEPT_CHARACTERS = 20_000


class LiveOutput:
    """One call's output: `show` gets the end of it, at once at first, then after a pause."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._text = ""
        self._is_news = False
        self._pause: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Take a piece."""
        self._text = (self._text + text)[-KEPT_CHARACTERS:]
        self._is_news = True
        if self._pause is None:
            self._tell()

    def close(self) -> None:
        """Tell no more: the result has it all."""
        if self._pause is not None:
            self._pause.cancel()

    def _tell(self) -> None:
        self._pause = None
        if self._is_news:
            self._is_news = False
            self._show(self._text)
            self._pause = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._tell)


def replay(messages: Iterable[Message], folder: str) -> Iterator[Update]:
    """Yield the updates, in order. Notes are for the model alone."""
    calls: dict[str, ShownCall] = {}
    for message in messages:
        match message:
            case UserMessage():
                yield from _user(message)
            case AssistantMessage():
                yield from _assistant(message, calls, folder)
            case CallResult():
                call = calls.get(message.call)
                if call is not None:
                    yield call.ended(message.text, message.effect, is_error=message.is_error)
            case Note():
                pass


def _user(message: UserMessage) -> Iterator[Update]:
    if message.text:
        yield update_user_message_text(message.text)
    for file in message.attachments:
        if file.data and file.media_type.startswith("image/"):
            yield update_user_message(image_block(file.data, file.media_type))


def _assistant(message: AssistantMessage, calls: dict[str, ShownCall], folder: str) -> Iterator[Update]:
    thoughts = "\n\n".join(thought.text for thought in message.reasoning if thought.text)
    if thoughts:
        yield update_agent_thought_text(thoughts)
    if message.text:
        yield update_agent_message_text(message.text)
    for call in message.calls:
        calls[call.id] = ShownCall(call.id, call.name, call.arguments, folder)
        yield calls[call.id].begin("pending")
        if plan := plan_in(call.name, call.arguments):
            yield plan


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
        self._outbox.put(update_user_message_text(event.text))

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
        if plan := plan_in(event.name, event.arguments):
            self._outbox.put(plan)

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
