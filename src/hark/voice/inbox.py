"""The inbox for voice messages. Each message is transcribed once, delivered in order of arrival, and never lost."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from hark.protocol.speech import Transcriber
from hark.protocol.voice_messages import VoiceClient, VoiceNote
from hark.voice.pending_recordings import PendingRecordings
from hark.voice.settings import VoiceSettings
from hark.voice.voice_message_delivery import SOURCE, QueueSlot, VoiceMessageDelivery

T = TypeVar("T")

_log = logging.getLogger(__name__)


class TranscribingVoiceInbox:
    """Accepts voice messages from all surfaces. Without a transcriber, stores them and notifies the sender."""

    def __init__(self, transcriber: Transcriber | None, recordings: PendingRecordings, settings: VoiceSettings) -> None:
        self._transcriber = transcriber
        self._recordings = recordings
        self._settings = settings
        self._queues: dict[str, list[QueueSlot]] = {}
        self._deliveries: dict[tuple[str, str], VoiceMessageDelivery] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_on(self) -> bool:
        """Whether a transcriber is available."""
        return self._transcriber is not None

    def reconfigure(self, transcriber: Transcriber | None, settings: VoiceSettings) -> None:
        """Use another transcriber and settings for new voice messages. Transcriptions in progress are not affected."""
        self._transcriber = transcriber
        self._settings = settings

    async def wait_until_idle(self) -> None:
        """Wait until the voice messages currently in progress are processed. Safe to cancel."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def accept(self, note: VoiceNote, client: VoiceClient) -> VoiceMessageDelivery:
        """Accept a voice message and reserve its position in the queue. A redelivered message is not added twice."""
        key = note.conversation, note.id
        if key in self._deliveries:
            return self._deliveries[key]
        slot = self._join_queue(note.conversation)

        async def stop() -> None:
            await self._stop_earlier(note.conversation, slot, lambda: client.session.interrupt(SOURCE))

        delivery = VoiceMessageDelivery(note, client, slot, self._recordings, stop)
        self._deliveries[key] = delivery
        task = asyncio.create_task(delivery.run(self._transcriber, self._settings), name=f"voice message {note.id}")
        self._tasks.add(task)

        def clean_up(task: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            del self._deliveries[key]
            self._leave_queue(note.conversation, slot)
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("voice message %s failed; it will be retried at the next start: %r", note.id, error)

        task.add_done_callback(clean_up)
        return delivery

    def unfinished_notes(self) -> Iterator[VoiceNote]:
        """Yield the voice messages that an earlier process accepted but did not finish. Blocks on disk access."""
        return self._recordings.unfinished_notes()

    def pending_count(self, conversation: str) -> int:
        """Return the number of messages in a conversation that are still in progress."""
        return len(self._queues.get(conversation, ()))

    async def send_in_order(self, conversation: str, send: Callable[[bool], Awaitable[T]]) -> T:
        """Send a text message after all earlier messages in its conversation that are still in progress."""
        slot = self._join_queue(conversation)
        try:
            await slot.wait_until_first()
            return await send(slot.is_stopped)
        finally:
            self._leave_queue(conversation, slot)

    async def stop(self, conversation: str, interrupt: Callable[[], Awaitable[T]]) -> T:
        """Interrupt immediately, and withdraw the conversation's voice messages that are not yet transcribed."""
        slot = self._join_queue(conversation)
        try:
            return await self._stop_earlier(conversation, slot, interrupt)
        finally:
            self._leave_queue(conversation, slot)

    def withdraw(self, conversation: str, id: str) -> bool:  # noqa: A002
        """Withdraw a voice message. Return False if the message is not in progress or is already transcribed."""
        delivery = self._deliveries.get((conversation, id))
        return delivery is not None and delivery.withdraw()

    async def close(self) -> None:
        """Cancel all messages in progress. Unsent messages are transcribed again at the next start."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _stop_earlier(self, conversation: str, slot: QueueSlot, interrupt: Callable[[], Awaitable[T]]) -> T:
        """Mark the conversation's earlier messages as stopped, withdraw those not yet transcribed, and interrupt."""
        before = slot.slots_before()
        for other in before:
            other.is_stopped = True
        for delivery in self._deliveries.values():
            if delivery.conversation == conversation and delivery.slot in before:
                delivery.withdraw()
        return await interrupt()

    def _join_queue(self, conversation: str) -> QueueSlot:
        return QueueSlot(self._queues.setdefault(conversation, []))

    def _leave_queue(self, conversation: str, slot: QueueSlot) -> None:
        slot.leave()
        if not self._queues.get(conversation, True):
            del self._queues[conversation]
