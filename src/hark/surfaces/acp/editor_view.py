"""Converts a session's events and history to updates for the editor."""

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
from hark.surfaces.acp.tool_calls import EditorToolCall, build_plan_update
from hark.surfaces.acp.update_queue import Update, UpdateQueue

MIN_INTERVAL_SECONDS = 0.1
MAX_OUTPUT_CHARACTERS = 20_000


class LiveOutput:
    """The live output of one call. `show` receives the last part of it, immediately and then at most every 0.1 s."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._text = ""
        self._has_new_text = False
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Append a piece of output."""
        self._text = (self._text + text)[-MAX_OUTPUT_CHARACTERS:]
        self._has_new_text = True
        if self._timer is None:
            self._show_new_text()

    def close(self) -> None:
        """Stop showing output, because the result contains all of it."""
        if self._timer is not None:
            self._timer.cancel()

    def _show_new_text(self) -> None:
        self._timer = None
        if self._has_new_text:
            self._has_new_text = False
            self._show(self._text)
            self._timer = asyncio.get_running_loop().call_later(MIN_INTERVAL_SECONDS, self._show_new_text)


def replay_updates(messages: Iterable[Message], folder: str) -> Iterator[Update]:
    """Yield the updates that show past messages, in order. Notes are left out, because they are for the model."""
    calls: dict[str, EditorToolCall] = {}
    for message in messages:
        match message:
            case UserMessage():
                yield from _user_updates(message)
            case AssistantMessage():
                yield from _assistant_updates(message, calls, folder)
            case CallResult():
                call = calls.get(message.call)
                if call is not None:
                    yield call.end_update(message.text, message.effect, is_error=message.is_error)
            case Note():
                pass


def _user_updates(message: UserMessage) -> Iterator[Update]:
    if message.text:
        yield update_user_message_text(message.text)
    for file in message.attachments:
        if file.data and file.media_type.startswith("image/"):
            yield update_user_message(image_block(file.data, file.media_type))


def _assistant_updates(message: AssistantMessage, calls: dict[str, EditorToolCall], folder: str) -> Iterator[Update]:
    thoughts = "\n\n".join(thought.text for thought in message.reasoning if thought.text)
    if thoughts:
        yield update_agent_thought_text(thoughts)
    if message.text:
        yield update_agent_message_text(message.text)
    for call in message.calls:
        calls[call.id] = EditorToolCall(call.id, call.name, call.arguments, folder)
        yield calls[call.id].start_update("pending")
        if plan := build_plan_update(call.name, call.arguments):
            yield plan


RESTARTED_TEXT = "The stream broke; the reply starts again."


class EditorView:
    """Converts events to updates without waiting."""

    def __init__(self, session: Session, folder: str, updates: UpdateQueue) -> None:
        self._session = session
        self._folder = folder
        self._updates = updates
        self._calls: dict[str, EditorToolCall] = {}
        self._outputs: dict[str, LiveOutput] = {}

    def show_event(self, event: AnyEvent) -> None:
        """Queue the update for an event."""
        match event:
            case ReplyDelta(text=text):
                self._updates.add_text(text)
            case ReasoningDelta(text=text):
                self._updates.add_text(text, is_thought=True)
            case ReplyRestarted():
                self._add_note(RESTARTED_TEXT)
            case RouteChanged(route=route, reason=reason):
                self._add_note(f"Switched to {route}: {reason}")
            case Notice(text=text):
                self._add_note(text)
            case CallStart():
                self._start_call(event)
            case CallOutput(call=call, text=text):
                if call in self._outputs:
                    self._outputs[call].add(text)
            case CallEnd():
                self._end_call(event)
            case TurnEnd():
                self._end_turn(event)
            case _:
                pass

    def show_message(self, event: MessageAccepted) -> None:
        """Show a message that was sent from another surface."""
        self._updates.add(update_user_message_text(event.text))

    def get_asked_call(self, call: str) -> EditorToolCall:
        """Return the call that a question is about. Shows the call if it is not shown yet."""
        known = self._calls.get(call)
        if known is None:
            asked = self._session.find_call(call)
            name, arguments = (asked.name, asked.arguments) if asked else ("question", "")
            known = EditorToolCall(call, name, arguments, self._folder)
            self._calls[call] = known
            self._updates.add(known.start_update("pending"))
        return known

    def close(self) -> None:
        """Stop showing live output."""
        for output in self._outputs.values():
            output.close()
        self._outputs.clear()

    def _start_call(self, event: CallStart) -> None:
        call = self._calls.get(event.call)
        if call is None:
            call = self._calls[event.call] = EditorToolCall(event.call, event.name, event.arguments, self._folder)
            self._updates.add(call.start_update("in_progress"))
        else:
            self._updates.add(call.running_update())
        self._outputs[event.call] = LiveOutput(lambda text: self._updates.add_output(call, text))
        if plan := build_plan_update(event.name, event.arguments):
            self._updates.add(plan)

    def _end_call(self, event: CallEnd) -> None:
        output = self._outputs.pop(event.call, None)
        if output is not None:
            output.close()
        call = self._calls.pop(event.call, None)
        if call is None:  # the call never started: the tool is unknown or not allowed
            call = EditorToolCall(event.call, event.name, "", self._folder)
            self._updates.add(call.start_update("pending"))
        self._updates.add(call.end_update(event.text, event.effect, is_error=event.is_error))

    def _end_turn(self, event: TurnEnd) -> None:
        match event.outcome:
            case LimitReached(message=message):
                self._updates.add_text(f"\n\n[{message}]")
            case Interrupted(left_running=left) if left:
                self._add_note(f"Still running (could not be stopped): {', '.join(left)}")
            case _:
                pass
        self._calls.clear()
        self.close()

    def _add_note(self, text: str) -> None:
        self._updates.add_text(f"{text}\n", is_thought=True)
