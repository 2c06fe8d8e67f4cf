"""One session in an editor: its prompts in order, and the stops that end them."""

import logging
from collections.abc import Sequence
from contextlib import suppress

import anyio
from acp import Client, RequestError
from acp.schema import PromptResponse
from anyio.abc import TaskGroup

from hark.protocol.commands import Delivery
from hark.protocol.events import (
    AnyEvent,
    MessageAccepted,
    Notice,
    QuestionAsked,
    QuestionClosed,
    ReceiptChanged,
    TurnEnd,
    TurnStart,
)
from hark.protocol.meaning import AnswerMeaning, CommandMeaning, InvalidAnswerMeaning, MessageMeaning, StopMeaning
from hark.protocol.session import Session, SessionStatus
from hark.protocol.store import StoreError
from hark.surfaces.acp.editor_view import EditorView
from hark.surfaces.acp.options import build_status_updates
from hark.surfaces.acp.permission_requests import PermissionRequests
from hark.surfaces.acp.prompt import EditorPrompt, PromptEnd, PromptMessage, prompt_error, to_response
from hark.surfaces.acp.update_queue import Update, UpdateQueue
from hark.text.answers import AnswerResult, find_answer

USER_SOURCE = "user"
NEW_MESSAGE_SOURCE = "new message"
FATAL_NOTICE_CODES = ("store", "internal")
LOG = logging.getLogger(__name__)


class EditorConversation:
    """A session's prompts. They run in the order of the calls to `prompt`, since each call first registers its prompt.

    A stop affects all prompts that are registered when `stop` is called, but no later prompts.
    """

    def __init__(self, session: Session, client: Client, status: SessionStatus, tasks: TaskGroup) -> None:
        self.session = session
        self.status = status
        self.updates = UpdateQueue(self._send_update)
        self._client = client
        self._tasks = tasks
        self._view = EditorView(session, status.folder, self.updates)
        self._permission_requests = PermissionRequests(session, client, self.updates, tasks)
        self._prompts: list[EditorPrompt] = []
        self._asked: dict[str, QuestionAsked] = {}
        self._last_closed: QuestionAsked | None = None  # in the running turn
        self._events = session.events()
        self._scope = anyio.CancelScope()
        tasks.start_soon(self._show_events)

    async def prompt(self, message: PromptMessage, stopped_by: str = "") -> PromptResponse:
        """Run a prompt. Return when everything that it caused has ended and is shown.

        Raises:
            RequestError: The prompt failed.
        """
        prompt = EditorPrompt(self.session.new_id(), stopped_by)
        before = list(self._prompts)
        self._prompts.append(prompt)
        try:
            meaning = None if message.attachments else self.session.interpret(message.text, self._find_answer)
            is_message = isinstance(meaning, MessageMeaning | None)
            if isinstance(meaning, AnswerMeaning | InvalidAnswerMeaning):
                end = await self._give_answer(meaning)
            elif isinstance(meaning, CommandMeaning | StopMeaning):
                end = await self._run_command(prompt, meaning, is_alone=not before)
            else:
                await self._end_earlier_prompts(before)
                end = await self._run_message(prompt, message)
            await self.updates.wait_until_sent()
        finally:
            self._prompts.remove(prompt)
            prompt.finished.set()
        if isinstance(end, RequestError):
            raise end
        if end is not None:
            return to_response(end)
        return PromptResponse(stop_reason="cancelled" if prompt.stopped_by or is_message else "end_turn")

    async def stop(self, source: str = USER_SOURCE) -> None:
        """Stop every registered prompt immediately and return when they have settled."""
        await self._stop_prompts(list(self._prompts), source)

    async def refresh(self) -> None:
        """Send the editor the changes in the session's status."""
        now = await self.session.status()
        before, self.status = self.status, now
        for update in build_status_updates(before, now):
            self.updates.add(update)

    async def close(self) -> None:
        """Stop every prompt and send no more updates."""
        await self.stop()
        self._scope.cancel()

    # Prompts.

    async def _end_earlier_prompts(self, before: Sequence[EditorPrompt]) -> None:
        """Stop or await the earlier prompts, depending on the delivery. A steering prompt runs alongside them."""
        match self.session.delivery:
            case Delivery.STEER:
                return
            case Delivery.INTERRUPT:
                await self._stop_prompts(before, NEW_MESSAGE_SOURCE)
            case Delivery.QUEUE:
                pass
        for prompt in before:
            await prompt.finished.wait()

    async def _run_message(self, prompt: EditorPrompt, message: PromptMessage) -> PromptEnd:
        """Send the message. An already stopped prompt is also sent, to store its text, and is stopped at once."""
        prompt.is_sent = True
        if prompt.stopped_by:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send_message, prompt, message)
                tasks.start_soon(self._interrupt, prompt.stopped_by, "")
        else:
            await self._send_message(prompt, message)
        return await prompt.wait_for_end()

    async def _send_message(self, prompt: EditorPrompt, message: PromptMessage) -> None:
        try:
            receipt = await self.session.say(message.text, id=prompt.message, attachments=message.attachments)
            prompt.apply_receipt(receipt)
        except StoreError as error:
            prompt.finish(prompt_error(str(error), "store"))
        if prompt.stopped_by and prompt.is_queued:
            await self._withdraw(prompt)

    async def _run_command(
        self, prompt: EditorPrompt, command: CommandMeaning | StopMeaning, *, is_alone: bool
    ) -> PromptEnd:
        """Run a slash command and wait for the turn that it may start."""
        prompt.is_sent = True
        try:
            with prompt.command_scope:
                self.updates.add_text(f"{await self.session.run_command(command)}\n\n")
                await self.refresh()
                if is_alone:
                    # The turn's updates are queued before this returns, because readers receive its end first.
                    await self.session.idle()
            if prompt.stopped_by:
                await self._interrupt(prompt.stopped_by, "")
        except StoreError as error:
            return prompt_error(str(error), "store")
        return None

    def _find_answer(self, text: str) -> AnswerResult:
        return find_answer(text, self.session.open_questions(), self._last_closed, is_private=True)

    async def _give_answer(self, answer: AnswerMeaning | InvalidAnswerMeaning) -> PromptEnd:
        """Answer a question with a prompt's text. Show the answer, or why it is refused."""
        shown = answer.reason if isinstance(answer, InvalidAnswerMeaning) else f"Answered: {answer.text}"
        try:
            if isinstance(answer, AnswerMeaning) and (
                refusal := await self.session.answer(answer.question, answer.text)
            ):
                shown = refusal.message
        except StoreError as error:
            return prompt_error(str(error), "store")
        self.updates.add_text(f"{shown}\n\n")
        return None

    # Stops.

    async def _stop_prompts(self, prompts: Sequence[EditorPrompt], source: str) -> None:
        """Mark each prompt as stopped and interrupt the running turn. Nothing is awaited before that."""
        for prompt in prompts:
            prompt.stop(source)
        running = [prompt for prompt in prompts if prompt.is_running]
        if not running:
            return
        # An empty name matches the turn or message that is still arriving and whose name isn't known yet.
        turn = next((prompt.turn for prompt in running if prompt.turn), "")
        await self._interrupt(source, turn)
        for prompt in running:
            if prompt.is_queued:
                await self._withdraw(prompt)

    async def _interrupt(self, source: str, turn: str) -> None:
        """Interrupt a turn immediately and return when it has settled."""
        try:
            await self.session.interrupt(source, turn)
        except StoreError as error:  # another process owns the turn and can't be reached
            LOG.warning("could not interrupt session %s: %s", self.session.id, error)

    async def _withdraw(self, prompt: EditorPrompt) -> None:
        """Withdraw a queued message. A message that has just started is stopped when its turn starts."""
        if await self.session.withdraw(prompt.message) is None:
            prompt.finish(None)

    # Events.

    async def _show_events(self) -> None:
        """Show the session's events until the session closes."""
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self.updates.run)
                    async for event in self._events:
                        self._handle_event(event)
        except Exception:  # the surface boundary: a failure affects only this conversation
            LOG.exception("session %s can no longer be shown", self.session.id)
            self._fail_prompts("The session can no longer be shown; see the log. Load the session again.", "internal")
        finally:
            self._view.close()
            for prompt in self._prompts:
                prompt.finish(None)

    def _handle_event(self, event: AnyEvent) -> None:
        match event:
            case MessageAccepted():
                if all(prompt.message != event.id for prompt in self._prompts):
                    self._view.show_message(event)
            case ReceiptChanged(receipt=receipt):
                for prompt in self._prompts:
                    if prompt.message == receipt.id:
                        prompt.apply_receipt(receipt)
            case TurnStart():
                self._start_turn(event)
            case TurnEnd():
                self._view.show_event(event)
                self._last_closed = None
                for prompt in self._prompts:
                    if prompt.turn == event.turn:
                        prompt.finish(event)
            case QuestionAsked():
                self._asked[event.question] = event
                self._permission_requests.ask(event, self._view)
            case QuestionClosed():
                self._last_closed = self._asked.pop(event.question, self._last_closed)
                self._permission_requests.close(event)
            case _:
                self._view.show_event(event)
                if isinstance(event, Notice) and event.turn is None and event.code in FATAL_NOTICE_CODES:
                    self._fail_prompts(event.text, event.code)

    def _start_turn(self, event: TurnStart) -> None:
        for prompt in self._prompts:
            if prompt.message in event.messages and event.turn:
                prompt.assign_turn(event.turn)
                if prompt.stopped_by:
                    self._tasks.start_soon(self._interrupt, prompt.stopped_by, event.turn)
        self._tasks.start_soon(self._refresh_quietly)

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except StoreError as error:
            LOG.info("could not read the status of session %s: %s", self.session.id, error)

    def _fail_prompts(self, message: str, code: str) -> None:
        for prompt in self._prompts:
            prompt.finish(prompt_error(message, code))

    async def _send_update(self, update: Update) -> None:
        with suppress(ConnectionError):  # the editor has left and the connection is closing
            await self._client.session_update(session_id=self.session.id, update=update)
