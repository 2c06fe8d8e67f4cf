"""What Slack sends, delivered in order: each chat by itself, and a button press before all that waits."""

import asyncio
import logging
from weakref import WeakValueDictionary

from hark.protocol.chat import Deliver, Incoming
from hark.surfaces.slack.incoming import SlackEventReader, pressed
from hark.surfaces.slack.wire_types import Message, Press

LOG = logging.getLogger(__name__)


class EventDelivery:
    """Delivers. When a method returns, what it was given is durable, or not for us; what it raises is not acked."""

    def __init__(self, intake: SlackEventReader, deliver: Deliver) -> None:
        self._intake = intake
        self._deliver = deliver
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def hear(self, event: Message) -> None:
        """Deliver a message, behind those that came before it in its chat: they may have files to be fetched."""
        lock = self._locks.setdefault(event.channel, asyncio.Lock())
        async with lock:
            incoming = await self._intake.read(event)
            if incoming is not None:
                await self._pass_on(incoming)
                self._intake.taken(event, incoming)

    async def press(self, press: Press) -> None:
        """Deliver the press of a button, at once."""
        incoming = pressed(press)
        if incoming is not None:
            await self._pass_on(incoming)

    async def _pass_on(self, incoming: Incoming) -> None:
        try:
            await self._deliver(incoming)
        except Exception:  # the surface's boundary: Bolt takes it from here, and sends no ack
            LOG.exception("slack: %s was not kept; Slack will send it again", incoming.id)
            raise
