"""One chat platform at work: supervised, and every message kept before the platform hears that we have it."""

import logging

import anyio
from anyio.abc import TaskGroup

from hark.protocol.chat import Address, ChatError, ChatSurface, Incoming, Outgoing, Removed, Written
from hark.surfaces.chat.conversation import Line
from hark.surfaces.chat.people import People
from hark.surfaces.chat.room import House, Room
from hark.surfaces.chat.settings import ChatSettings

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
LOG = logging.getLogger(__name__)


class Platform:
    """Runs one ChatSurface. What fails or is slow here touches no other platform, and no other address."""

    def __init__(self, surface: ChatSurface, settings: ChatSettings, people: People, house: House) -> None:
        self._surface = surface
        self._settings = settings
        self._people = people
        self._house = house
        self._rooms: dict[Address, Room] = {}
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Receive and answer until cancelled; a platform that fails is tried again, later and later."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            await self._take_up()
            pause = FIRST_PAUSE_SECONDS
            while True:
                began, asked = anyio.current_time(), 0.0
                try:
                    await self._surface.run(self.deliver)
                except ChatError as error:
                    asked = error.retry_after or 0.0
                    LOG.warning("%s: %s", self._surface.name, error)
                except Exception:  # the surface loop: it fails alone
                    LOG.exception("%s failed", self._surface.name)
                pause = FIRST_PAUSE_SECONDS if anyio.current_time() - began > LONGEST_PAUSE_SECONDS else pause
                await anyio.sleep(max(pause, asked))
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def deliver(self, incoming: Incoming) -> None:
        """Take something that came in: it is durable when this returns, unless its author may not talk.

        Raises:
            StoreError: It could not be kept; the platform must deliver it again.
        """
        if isinstance(incoming, Written) and not incoming.is_for_us and self._settings.listen == "mentions":
            return
        if not isinstance(incoming, Removed) and not await self._is_welcome(incoming):
            return
        kept = await self._house.ledger.accept(incoming)
        if kept is not None:
            self._room(incoming.address).put(kept)

    async def _is_welcome(self, incoming: Incoming) -> bool:
        assert not isinstance(incoming, Removed)
        author = incoming.author
        if self._people.is_known(author):
            return not (isinstance(incoming, Written) and self._people.is_too_fast(author))
        if isinstance(incoming, Written):
            code = self._people.code_for(author)
            text = f"I don't know you yet. Ask my owner to run: hark pair approve {code}"
            try:
                await self._surface.send(incoming.address, Outgoing(text))
            except ChatError as error:
                LOG.info("%s: a stranger could not be told their code: %s", self._surface.name, error)
        return False

    async def _take_up(self) -> None:
        """Go on with what an earlier process left: messages that were kept, and replies that are owed."""
        for line in await self._house.ledger.owed():
            if line.address.surface == self._surface.name:
                self._room(line.address)
        for kept in await self._house.ledger.kept():
            if kept.incoming.address.surface == self._surface.name:
                self._room(kept.incoming.address).put(kept)

    def _room(self, address: Address) -> Room:
        room = self._rooms.get(address)
        if room is None:
            session = self._house.open_session(session_name(address))
            line = Line(self._surface, address, session, self._settings, self._house.stop_words)
            room = self._rooms[address] = Room(line, self._house)
            assert self._tasks is not None
            self._tasks.start_soon(self._keep, room, address, name=f"chat {address.surface} {address.chat}")
        return room

    async def _keep(self, room: Room, address: Address) -> None:
        """Run a room; one that sleeps is forgotten, and made anew when somebody writes."""
        try:
            await room.run()
        finally:
            if self._rooms.get(address) is room:
                del self._rooms[address]


def session_name(address: Address) -> str:
    """Return the session of an address: threads are sessions of their own."""
    parts = [address.surface, address.chat, *([address.thread] if address.thread else [])]
    return ":".join("".join(_letter(letter) for letter in part) for part in parts)


def _letter(letter: str) -> str:
    is_plain = letter.isascii() and (letter.isalnum() or letter in "._@-")
    return letter if is_plain else f"+{ord(letter):x}+"
