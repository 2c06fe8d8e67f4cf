"""One chat platform at work: supervised, and every message kept before the platform hears that we have it."""

import logging

import anyio
from anyio.abc import TaskGroup

from hark.protocol.chat import Address, ChatError, ChatSurface, Incoming, Outgoing, Removed, Written
from hark.protocol.names import address_session, surface_of
from hark.surfaces.chat.chat import Chat, ChatServices
from hark.surfaces.chat.chat_route import ChatRoute
from hark.surfaces.chat.people import People
from hark.surfaces.chat.settings import ChatSettings
from hark.timing.backoff import Backoff

LONGEST_PAUSE_SECONDS = 60.0
LOG = logging.getLogger(__name__)


class Platform:
    """Runs one ChatSurface. What fails or is slow here touches no other platform, and no other address."""

    def __init__(self, surface: ChatSurface, settings: ChatSettings, people: People, house: ChatServices) -> None:
        self._surface = surface
        self._settings = settings
        self._people = people
        self._house = house
        self._rooms: dict[Address, Chat] = {}
        self._tasks: TaskGroup | None = None
        self._complaint = ""

    async def run(self) -> None:
        """Receive and answer until cancelled; a platform that fails is tried again, later and later."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            is_taken_up = False
            backoff = Backoff(self._house.first_pause_seconds, LONGEST_PAUSE_SECONDS)
            while True:
                began, asked = anyio.current_time(), 0.0
                try:
                    if not is_taken_up:
                        await self._take_up()
                        is_taken_up = True
                    await self._surface.run(self.deliver)
                except ChatError as error:
                    asked = error.retry_after or 0.0
                    self._complain(error, is_ours=False)
                except Exception as error:  # noqa: BLE001  # the surface loop: it fails alone
                    self._complain(error, is_ours=True)
                if anyio.current_time() - began > LONGEST_PAUSE_SECONDS:
                    backoff.reset()
                    self._complaint = ""
                await anyio.sleep(max(backoff.next_delay(), asked))

    def _complain(self, error: Exception, *, is_ours: bool) -> None:
        """Say what is wrong, once for as long as it is the same."""
        said, self._complaint = self._complaint, repr(error)
        level = logging.DEBUG if said == self._complaint else logging.ERROR if is_ours else logging.WARNING
        text = "failed" if is_ours else str(error)
        LOG.log(level, "%s: %s It is tried again, later and later.", self._surface.name, text, exc_info=is_ours)

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

    def session_began(self, session: str) -> None:
        """A turn begins in a session: if that is an address's of ours, what comes of it is shown there.

        Most were begun by somebody who wrote there; others by a schedule, a program, or another surface.
        """
        if self._tasks is not None and surface_of(session) == self._surface.name:
            self._tasks.start_soon(self._open_for, session)

    async def _open_for(self, session: str) -> None:
        line = await self._house.ledger.line_of(session)
        if line is not None:
            self._room(line.address)

    async def _is_welcome(self, incoming: Incoming) -> bool:
        assert not isinstance(incoming, Removed)
        author = incoming.author
        if not self._people.is_known(author):
            if isinstance(incoming, Written) and self._people.is_answered(author):
                code = self._people.code_for(author)
                await self._tell(
                    incoming.address, f"I don't know you yet. Ask my owner to run: hark pair approve {code}"
                )
            return False
        if (
            not isinstance(incoming, Written)
            or self._house.is_stop(incoming.text, self._surface.name)
            or not self._people.is_too_fast(author)
        ):
            return True
        if self._people.is_to_be_told(author):
            most = self._settings.per_minute
            await self._tell(
                incoming.address,
                f"You have written more than {most} messages within a minute. From this one on nothing was taken: "
                "please send it again in a minute. Stopping always works.",
                incoming.id,
            )
        return False

    async def _tell(self, address: Address, text: str, reply_to: str = "") -> None:
        """Tell somebody whose message is not taken why."""
        try:
            await self._surface.send(address, Outgoing(text, reply_to=reply_to))
        except (ChatError, OSError) as error:
            LOG.info("%s: somebody could not be told why they are not heard: %s", self._surface.name, error)

    async def _take_up(self) -> None:
        """Go on with what an earlier process left: messages that were kept, and replies that are owed."""
        summaries = {line.session: line.summary for line in await self._house.sessions()}
        for line in await self._house.ledger.lines(self._surface.name):
            summary = summaries.get(line.session)
            turns = summary.turns if summary else 0
            if turns < line.delivered:
                await self._house.ledger.forget(line.address)
            is_busy = summary is not None and (summary.is_open or summary.is_waiting)
            if turns != line.delivered or is_busy:
                self._room(line.address)
        for kept in await self._house.ledger.kept(self._surface.name):
            self._room(kept.incoming.address).put(kept)

    def _room(self, address: Address) -> Chat:
        room = self._rooms.get(address)
        if room is None:
            session = self._house.open_session(address_session(address))
            line = ChatRoute(self._surface, address, session, self._settings)
            room = self._rooms[address] = Chat(line, self._house)
            assert self._tasks is not None
            self._tasks.start_soon(self._keep, room, address, name=f"chat {address.surface} {address.chat}")
        return room

    async def _keep(self, room: Chat, address: Address) -> None:
        """Run a room; one that sleeps is forgotten, and made anew when somebody writes.

        One that fails is opened anew after a pause, with all that was kept for it.
        """
        backoff = Backoff(self._house.first_pause_seconds, LONGEST_PAUSE_SECONDS)
        while True:
            try:
                await room.run()
                if not room.has_waiting:
                    break
            except Exception:  # the surface loop: one address fails alone
                LOG.exception("%s: the chat %s failed, and is opened again", self._surface.name, address.chat)
                await anyio.sleep(backoff.next_delay())
        del self._rooms[address]
