"""One session in an editor: its prompts in their order, and what ends them."""

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
from hark.protocol.meaning import CommandMeaning, StopMeaning
from hark.protocol.session import Session, SessionStatus
from hark.protocol.store import StoreError
from hark.surfaces.acp.options import changes
from hark.surfaces.acp.permission_requests import PermissionRequests
from hark.surfaces.acp.prompt import EditorPrompt, End, PromptMessage, failure, respond
from hark.surfaces.acp.update_queue import Update, UpdateQueue
from hark.surfaces.acp.view import View

PERSON = "user"
NEW_MESSAGE = "new message"
LOST = ("store", "internal")
LOG = logging.getLogger(__name__)


class EditorConversation:
    """Prompts are taken in the order of their calls, for each is noted in its call's very first step.

    So is a stop: it meets all prompts that are noted by then, and none that comes later.
    """

    def __init__(self, session: Session, client: Client, standing: SessionStatus, tasks: TaskGroup) -> None:
        self.session = session
        self.standing = standing
        self.outbox = UpdateQueue(self._send)
        self._client = client
        self._tasks = tasks
        self._view = View(session, standing.folder, self.outbox)
        self._questions = PermissionRequests(session, client, self.outbox, tasks)
        self._prompts: list[EditorPrompt] = []
        self._events = session.events()
        self._scope = anyio.CancelScope()
        tasks.start_soon(self._run)

    async def prompt(self, said: PromptMessage, stopped_by: str = "") -> PromptResponse:
        """Return when all that the prompt caused is over and shown.

        Raises:
            RequestError: It failed.
        """
        prompt = EditorPrompt(self.session.new_id(), stopped_by)
        before = list(self._prompts)
        self._prompts.append(prompt)
        try:
            meaning = None if said.attachments else self.session.meaning(said.text)
            command = meaning if isinstance(meaning, CommandMeaning | StopMeaning) else None
            if command is not None:
                end = await self._command(prompt, command, is_alone=not before)
            else:
                await self._make_way(before)
                end = await self._say(prompt, said)
            await self.outbox.flushed()
        finally:
            self._prompts.remove(prompt)
            prompt.finished.set()
        if isinstance(end, RequestError):
            raise end
        if end is not None:
            return respond(end)
        return PromptResponse(stop_reason="cancelled" if prompt.stopped_by or command is None else "end_turn")

    async def stop(self, source: str = PERSON) -> None:
        """End every prompt that there is, in this very step; return when they have settled."""
        await self._stop(list(self._prompts), source)

    async def refresh(self) -> None:
        """Tell the editor what stands otherwise than it knows."""
        now = await self.session.status()
        before, self.standing = self.standing, now
        for update in changes(before, now):
            self.outbox.put(update)

    async def close(self) -> None:
        """End every prompt, and show nothing more."""
        await self.stop()
        self._scope.cancel()

    # Prompts.

    async def _make_way(self, before: Sequence[EditorPrompt]) -> None:
        """Have the prompts before this one end, or wait until they have; one that steers goes along with them."""
        match self.session.delivery:
            case Delivery.STEER:
                return
            case Delivery.INTERRUPT:
                await self._stop(before, NEW_MESSAGE)
            case Delivery.QUEUE:
                pass
        for prompt in before:
            await prompt.finished.wait()

    async def _say(self, prompt: EditorPrompt, said: PromptMessage) -> End:
        """Say it. One that was stopped before it could be said is said and stopped: its words are kept that way."""
        prompt.is_said = True
        if prompt.stopped_by:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._accept, prompt, said)
                tasks.start_soon(self._interrupt, prompt.stopped_by, "")
        else:
            await self._accept(prompt, said)
        return await prompt.end()

    async def _accept(self, prompt: EditorPrompt, said: PromptMessage) -> None:
        try:
            prompt.follow(await self.session.say(said.text, id=prompt.message, attachments=said.attachments))
        except StoreError as error:
            prompt.finish(failure(str(error), "store"))
        if prompt.stopped_by and prompt.is_waiting:
            await self._withdraw(prompt)

    async def _command(self, prompt: EditorPrompt, command: CommandMeaning | StopMeaning, *, is_alone: bool) -> End:
        """Run a slash command, and wait for what it set off."""
        prompt.is_said = True
        try:
            with prompt.command_scope:
                self.outbox.say(f"{await self.session.run_command(command)}\n\n")
                await self.refresh()
                if is_alone:
                    # What the turn shows is taken before this goes on: its end is told to readers first.
                    await self.session.idle()
            if prompt.stopped_by:
                await self._interrupt(prompt.stopped_by, "")
        except StoreError as error:
            return failure(str(error), "store")
        return None

    # Stops.

    async def _stop(self, prompts: Sequence[EditorPrompt], source: str) -> None:
        """Note the stop on each prompt, and cut what runs; nothing is awaited before that."""
        for prompt in prompts:
            prompt.stop(source)
        running = [prompt for prompt in prompts if prompt.is_running]
        if not running:
            return
        # Without a name, it meets the turn or message that is on its way in, of which no more is known yet.
        turn = next((prompt.turn for prompt in running if prompt.turn), "")
        await self._interrupt(source, turn)
        for prompt in running:
            if prompt.is_waiting:
                await self._withdraw(prompt)

    async def _interrupt(self, source: str, turn: str) -> None:
        """Cut a turn in this very step; return when it has settled."""
        try:
            await self.session.interrupt(source, turn)
        except StoreError as error:  # the turn is another process's, and that can't be told
            LOG.warning("a stop of session %s could not be told: %s", self.session.id, error)

    async def _withdraw(self, prompt: EditorPrompt) -> None:
        """Take back a message that waits behind something else; one that just began is cut by its turn's start."""
        if await self.session.withdraw(prompt.message) is None:
            prompt.finish(None)

    # Events.

    async def _run(self) -> None:
        """Show the session's events until it closes."""
        try:
            with self._scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self.outbox.run)
                    async for event in self._events:
                        self._take(event)
        except Exception:  # the surface's boundary: this conversation fails alone
            LOG.exception("session %s can't be shown any more", self.session.id)
            self._fail("The session can't be shown any more; the log says why. Load it again.", "internal")
        finally:
            self._view.close()
            for prompt in self._prompts:
                prompt.finish(None)

    def _take(self, event: AnyEvent) -> None:
        match event:
            case MessageAccepted():
                if all(prompt.message != event.id for prompt in self._prompts):
                    self._view.show_message(event)
            case ReceiptChanged(receipt=receipt):
                for prompt in self._prompts:
                    if prompt.message == receipt.id:
                        prompt.follow(receipt)
            case TurnStart():
                self._start_turn(event)
            case TurnEnd():
                self._view.show(event)
                for prompt in self._prompts:
                    if prompt.turn == event.turn:
                        prompt.finish(event)
            case QuestionAsked():
                self._questions.ask(event, self._view)
            case QuestionClosed():
                self._questions.close(event)
            case _:
                self._view.show(event)
                if isinstance(event, Notice) and event.turn is None and event.code in LOST:
                    self._fail(event.text, event.code)

    def _start_turn(self, event: TurnStart) -> None:
        for prompt in self._prompts:
            if prompt.message in event.messages and event.turn:
                prompt.take(event.turn)
                if prompt.stopped_by:
                    self._tasks.start_soon(self._interrupt, prompt.stopped_by, event.turn)
        self._tasks.start_soon(self._refresh_quietly)

    async def _refresh_quietly(self) -> None:
        try:
            await self.refresh()
        except StoreError as error:
            LOG.info("how session %s stands is not known: %s", self.session.id, error)

    def _fail(self, words: str, code: str) -> None:
        for prompt in self._prompts:
            prompt.finish(failure(words, code))

    async def _send(self, update: Update) -> None:
        with suppress(ConnectionError):  # the editor has left: the end is on its way
            await self._client.session_update(session_id=self.session.id, update=update)
