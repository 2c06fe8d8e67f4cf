"""Processes the incoming messages of one chat address in order; a stop request overtakes queued messages."""

import asyncio

import anyio
from msgspec import structs

from hark.protocol.chat import ButtonPressed, IncomingMessage, MessageDeleted, MessageEdited
from hark.protocol.chat_ledger import PendingIncoming
from hark.protocol.meaning import StopMeaning
from hark.protocol.receipts import Receipt
from hark.protocol.speech import SpeechError
from hark.protocol.voice_messages import WITHDRAWN
from hark.surfaces.chat.chat_route import ChatRoute
from hark.surfaces.chat.event_display import ChatConversation
from hark.surfaces.chat.incoming_handler import IncomingHandler
from hark.surfaces.chat.message_batch import is_continuation, may_continue, merge_batch, merge_messages
from hark.surfaces.chat.spoken_reply import SpokenReplies
from hark.surfaces.chat.transcript_echo import ChatVoiceClient, TranscriptEcho, voice_note_for


class ChatProcessor:
    """Processes the incoming items of one chat address in order. `enqueue` never waits.

    `pending` lists the items that were enqueued and not started yet. `run` can be called again after it has returned.
    """

    def __init__(self, route: ChatRoute) -> None:
        self._route = route
        self._services = route.services
        self._handler = IncomingHandler(route)
        self._spoken_replies = SpokenReplies(self._services.narrator, route.session.id, route.outbox)
        self._conversation = ChatConversation(route, self._spoken_replies)
        self.pending: list[PendingIncoming] = []
        self._changes: list[PendingIncoming] = []  # edits and deletions that were not applied yet
        self._running_count = 0
        self._has_run = False
        self._changed = asyncio.Event()

    def enqueue(self, item: PendingIncoming) -> None:
        """Add an incoming item to be processed."""
        self.pending.append(item)
        if isinstance(item.incoming, MessageEdited | MessageDeleted):
            self._changes.append(item)
        self._changed.set()

    async def run(self) -> None:
        """Process incoming items and show the session's events, until cancelled or idle for `idle_seconds`.

        Raises:
            StoreError: The ledger or the session can't be written. Unprocessed items stay in the ledger.
        """
        binding = await self._services.ledger.binding(self._route.address, self._route.session.id)
        if self._has_run:
            await self._reload_pending()
        self._has_run, self._running_count = True, 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._conversation.run, binding.delivered)
            while not await self._wait_until_idle():
                # The tasks enter the ingress queue at their first step, in the order in which they were started.
                batch = await self._skip_delivered(await self._next_batch())
                if batch:
                    self._running_count += 1
                    tasks.start_soon(self._process_batch, batch)
            tasks.cancel_scope.cancel()

    async def _reload_pending(self) -> None:
        """Reload all unprocessed items of this address from the ledger."""
        stored = await self._services.ledger.pending(self._route.address.surface, self._route.address)
        positions = {item.place for item in stored}
        self.pending = [*stored, *(item for item in self.pending if item.place not in positions)]
        self._changes = [item for item in self.pending if isinstance(item.incoming, MessageEdited | MessageDeleted)]

    async def _wait_until_idle(self) -> bool:
        """Wait for work. Return False as soon as an item is pending, or True after an idle period."""
        while not self.pending:
            try:
                async with asyncio.timeout(self._services.idle_seconds):
                    self._changed.clear()
                    await self._changed.wait()
            except TimeoutError:
                if self._conversation.is_idle and not self._running_count and not self.pending:
                    return True
        return False

    async def _next_batch(self) -> list[PendingIncoming]:
        """Return the next item. If it may be part of a longer message, wait for its other parts and return them too."""
        batch = [self.pending.pop(0)]
        characters = self._route.surface.limits.characters
        while isinstance(last := batch[-1].incoming, IncomingMessage) and may_continue(last, characters):
            try:
                async with asyncio.timeout(self._services.batch_window_seconds):
                    while not self.pending:
                        self._changed.clear()
                        await self._changed.wait()
            except TimeoutError:
                if not self.pending:  # On a busy machine both can happen at once.
                    break
            following = self.pending[0].incoming
            if not isinstance(following, IncomingMessage) or not is_continuation(last, following, characters):
                break  # A stop request ends the wait, too.
            batch.append(self.pending.pop(0))
        return batch

    def _changes_for(self, batch: list[PendingIncoming]) -> list[PendingIncoming]:
        """Return the pending edits and deletions for messages that the session has not received yet."""
        ids = {item.incoming.id for item in batch if isinstance(item.incoming, IncomingMessage)}
        return [change for change in self._changes if change.incoming.id in ids]

    def _deletions_for(self, batch: list[PendingIncoming]) -> list[PendingIncoming]:
        return [change for change in self._changes_for(batch) if isinstance(change.incoming, MessageDeleted)]

    async def _skip_delivered(self, batch: list[PendingIncoming]) -> list[PendingIncoming]:
        """Remove the messages that an earlier process already delivered to the session, alone or merged with others."""
        parts = [kept.incoming for kept in batch if isinstance(kept.incoming, IncomingMessage)]
        if not batch[0].is_again:
            return batch
        is_voice = bool(parts) and parts[0].voice is not None
        if len(batch) == 1 and (is_voice or not self._changes_for(batch)):
            return [await self._check_recording(batch[0])]
        for count in range(len(parts), 0, -1):
            if await self._route.session.has_message(self._route.session_message_id(merge_messages(parts[:count]).id)):
                await self._services.ledger.mark_done(*(item.place for item in batch[:count]))
                self.pending = [*batch[count:], *self.pending]
                return []
        return batch

    async def _check_recording(self, pending: PendingIncoming) -> PendingIncoming:
        """Set `is_said` if an earlier process delivered the transcript, `is_withdrawn` if a stop withdrew the
        recording.

        A delivered recording is transcribed again only to show its transcript, and a stop no longer affects it. A
        withdrawn recording is not transcribed. Other items stay unchanged, because the session ignores duplicates.
        """
        if not isinstance(pending.incoming, IncomingMessage) or pending.incoming.voice is None:
            return pending
        message_id = self._message_id(pending)
        is_withdrawn = await self._route.ledger.find_sent(self._route.address, f"withdrawn:{message_id}") is not None
        is_said = await self._route.session.has_message(message_id) or await self._handler.was_answer(message_id)
        return structs.replace(pending, is_said=is_said, is_withdrawn=is_withdrawn and not is_said)

    async def _process_batch(self, batch: list[PendingIncoming]) -> None:
        try:
            first = batch[0].incoming
            processed = batch
            is_untranscribed = isinstance(first, IncomingMessage) and first.voice is not None and not batch[0].is_said
            if is_untranscribed and (deletions := self._deletions_for(batch)):
                self._changes = [change for change in self._changes if change not in deletions]
                processed = [*batch, *deletions]  # A deleted recording needs no transcript.
            elif batch[0].is_withdrawn:
                await self._show_withdrawn(first.id)
            elif isinstance(first, IncomingMessage) and first.voice is not None:
                processed = batch if await self._transcribe(batch[0], first) else []
            elif (turn := self._turn_to_stop(batch[0])) is not None:
                await self._stop_turn(batch[0], turn)
            else:
                processed = [*batch, *await self._deliver_to_session(batch)]
            if processed:
                await self._handler.wait_until_durable(first.id)
                await self._services.ledger.mark_done(*(item.place for item in processed))
        finally:
            self._running_count -= 1

    def _turn_to_stop(self, pending: PendingIncoming) -> str | None:
        """Return the turn that an item asks to stop: "" for the running turn, None if the item isn't a stop request."""
        incoming = pending.incoming
        if isinstance(incoming, ButtonPressed):
            kind, _, turn = incoming.value.partition(":")
            return turn if kind == "stop" else None
        if not isinstance(incoming, IncomingMessage) or incoming.attachments:
            return None
        return "" if isinstance(self._route.session.interpret(incoming.text.strip()), StopMeaning) else None

    async def _stop_turn(self, pending: PendingIncoming, turn: str) -> None:
        """Stop the turn at once. Earlier messages that have not reached the session yet won't start a turn.

        A Stop button names its turn. If that turn has ended, the button has no effect.
        """
        source, session = ("button" if turn else "user"), self._route.session

        async def stop() -> None:
            await self._handler.stop_turn(source, turn, pending.incoming.id)

        running = session.running_turn()
        is_meant = turn in ("", running.turn if running else "")
        await (self._services.ingress.stop(session.id, stop) if is_meant else stop())

    async def _deliver_to_session(self, batch: list[PendingIncoming]) -> list[PendingIncoming]:
        """Deliver a batch to the session in order. Return the edits and deletions that were applied with it."""
        session, first = self._route.session.id, batch[0]
        if isinstance(first.incoming, MessageDeleted) and self._services.ingress.withdraw(
            session, self._message_id(first)
        ):
            self._changes.remove(first)
            return []
        applied: list[PendingIncoming] = []

        async def deliver(is_stopped: bool) -> Receipt | None:
            if isinstance(first.incoming, MessageEdited | MessageDeleted):
                if first not in self._changes:
                    return None  # already applied together with its message
                self._changes.remove(first)
            applied.extend(self._changes_for(batch))
            self._changes = [change for change in self._changes if change not in applied]
            incoming = merge_batch([item.incoming for item in (*batch, *applied)])
            if incoming is None:
                return None
            self._handler.merged.remember([item.incoming for item in batch])
            return await self._handler.handle(incoming, is_stopped=is_stopped, is_retry=first.is_again)

        await self._services.ingress.send_in_order(session, deliver)
        return applied

    def _message_id(self, pending: PendingIncoming) -> str:
        return self._route.session_message_id(pending.incoming.id)

    async def _show_withdrawn(self, message: str) -> None:
        echo = TranscriptEcho(self._route.outbox, f"voice:{message}")
        echo.show(WITHDRAWN)
        echo.close()
        await echo.run()

    async def _transcribe(self, pending: PendingIncoming, message: IncomingMessage) -> bool:
        """Transcribe a recording. Return False if the next process must try again."""
        echo = TranscriptEcho(self._route.outbox, f"voice:{message.id}")
        self._spoken_replies.add_voice_message(self._route.session_message_id(message.id))
        listener = ChatVoiceClient(pending, self._route, self._handler, echo)
        delivery = self._services.ingress.accept(voice_note_for(self._route, pending), listener)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(echo.run)
            try:
                await delivery.result()
            except SpeechError:  # The sender has already been notified.
                return False
            finally:
                echo.close()
        return True
