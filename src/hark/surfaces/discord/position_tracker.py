"""Track how far Discord's gateway events were processed, so that the rest can be requested again."""

import contextlib
import time
from functools import partial
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct, structs

from hark.disk.finish_in_thread import finish_in_thread
from hark.disk.private_files import replace_file
from hark.disk.stored_json import read_json

MAX_CHATS = 500
SAVE_SECONDS = 0.5
OpenEvent = tuple[str, int]


class ChatPosition(Struct, frozen=True, omit_defaults=True):
    """The newest processed message of a chat. `guild` is "" for a direct chat."""

    message: int
    guild: str = ""


class GatewayPosition(Struct, frozen=True, omit_defaults=True):
    """A position in a gateway session. Without a `session` there is nothing to resume."""

    bot: str = ""
    session: str = ""
    gateway: str = ""
    sequence: int = 0
    heard: dict[str, ChatPosition] = {}


class PositionTracker:
    """Tracks the processed events and saves the position in a file, if a file is given.

    Discord replays the events after `sequence` when a session is resumed. `latest` is the position after the last
    received event, processed or not. `chats_to_catch_up` contains the chats whose missed messages must be read.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.latest = GatewayPosition()
        self._open: set[OpenEvent] = set()
        self.chats_to_catch_up: set[str] = set()
        self._saved_at = 0.0
        self._saving = anyio.Lock()

    @property
    def resume_position(self) -> GatewayPosition:
        """The position to resume from. All events up to it were processed.

        While chats still have missed messages, the position has no session to resume, so those chats are read again.
        """
        if self.chats_to_catch_up:
            return structs.replace(self.latest, session="", gateway="", sequence=0)
        first = min((sequence for session, sequence in self._open if session == self.latest.session), default=None)
        return self.latest if first is None else structs.replace(self.latest, sequence=first - 1)

    def load(self, bot: str) -> None:
        """Load the saved position of this bot. Open events count as unprocessed."""
        self.latest = self.resume_position if self.latest.bot else self._load_file()
        self._open.clear()
        self.chats_to_catch_up.clear()
        if self.latest.bot != bot:
            self.latest = GatewayPosition(bot)

    def begin_session(self, session: str, gateway: str, sequence: int) -> None:
        """Record that a new gateway session has begun."""
        self.latest = structs.replace(self.latest, session=session, gateway=gateway, sequence=sequence)

    def forget_session(self) -> None:
        """Forget the session, because it can't be resumed."""
        self.latest = structs.replace(self.latest, session="", gateway="", sequence=0)

    def advance(self, sequence: int) -> None:
        """Record that an event was received. Earlier open events stay open."""
        self.latest = structs.replace(self.latest, sequence=sequence)

    def open_event(self, sequence: int) -> OpenEvent:
        """Record that processing of an event has started. Return a handle for `close_event`."""
        event = self.latest.session, sequence
        self._open.add(event)
        return event

    async def close_event(self, event: OpenEvent) -> None:
        """Record that an event was processed. Save the position if the last save was some time ago."""
        self._open.discard(event)
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            await self.save()

    def record_message(self, chat: str, position: ChatPosition, *, is_addressed: bool) -> None:
        """Record a processed message. Only the latest chats in which the bot was addressed are tracked."""
        known = self.latest.heard.get(chat)
        if known is None and not is_addressed:
            return
        others = {name: other for name, other in self.latest.heard.items() if name != chat}
        while len(others) >= MAX_CHATS:
            del others[next(iter(others))]
        newer = known if known is not None and known.message > position.message else position
        self.latest = structs.replace(self.latest, heard={**others, chat: newer})
        if is_addressed:
            self._saved_at = 0.0

    def _load_file(self) -> GatewayPosition:
        try:
            position = read_json(self._file, GatewayPosition) if self._file else None
        except OSError:
            position = None
        return position or GatewayPosition()  # Without a position, a new session is started.

    async def save(self) -> None:
        """Write the position file durably. Cancelling has no effect once the write has begun."""
        self._saved_at = time.monotonic()
        if self._file is None:
            return
        async with self._saving:  # so that an older position never replaces a newer one
            with contextlib.suppress(OSError):  # Without the file, only resuming is lost.
                await finish_in_thread(partial(replace_file, self._file, msgspec.json.encode(self.resume_position)))
