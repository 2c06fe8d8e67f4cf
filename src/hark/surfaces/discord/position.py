"""How far the events of Discord's gateway were dealt with: what lies behind is asked for again."""

import contextlib
import time
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from hark.disk.private_files import replace_private

MOST_CHATS = 500
SAVE_SECONDS = 0.5
Mark = tuple[str, int]


class ChatPosition(Struct, frozen=True, omit_defaults=True):
    """The newest message of a chat that was dealt with; `guild` is "" for a direct chat."""

    message: int
    guild: str = ""


class GatewayPosition(Struct, frozen=True, omit_defaults=True):
    """Where we are in the gateway's session. Without a `session` there is none to resume."""

    bot: str = ""
    session: str = ""
    gateway: str = ""
    sequence: int = 0
    heard: dict[str, ChatPosition] = {}


class Position:
    """Kept in a file, if there is one. Discord replays what follows `sequence` to whoever resumes the session.

    `newest` is where to go on while what is open is still being dealt with: behind the last event that has come.
    `behind` are the chats that must be caught up with.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.newest = GatewayPosition()
        self._open: set[Mark] = set()
        self.behind: set[str] = set()
        self._saved_at = 0.0

    @property
    def place(self) -> GatewayPosition:
        """Where to go on: behind the last event before which all were dealt with.

        While there are chats to be caught up with, there is no session to resume: they are read again instead.
        """
        if self.behind:
            return structs.replace(self.newest, session="", gateway="", sequence=0)
        first = min((sequence for session, sequence in self._open if session == self.newest.session), default=None)
        return self.newest if first is None else structs.replace(self.newest, sequence=first - 1)

    def load(self, bot: str) -> None:
        """Go on where this bot was; what was open is not dealt with."""
        self.newest = self.place if self.newest.bot else self._read()
        self._open.clear()
        self.behind.clear()
        if self.newest.bot != bot:
            self.newest = GatewayPosition(bot)

    def begin(self, session: str, gateway: str, sequence: int) -> None:
        """A new session has begun."""
        self.newest = structs.replace(self.newest, session=session, gateway=gateway, sequence=sequence)
        self.save()

    def forget(self) -> None:
        """The session is gone: there is nothing to resume."""
        self.newest = structs.replace(self.newest, session="", gateway="", sequence=0)

    def reach(self, sequence: int) -> None:
        """This event has come; what is open before it stays open."""
        self.newest = structs.replace(self.newest, sequence=sequence)

    def open(self, sequence: int) -> Mark:
        """This event is being dealt with."""
        mark = self.newest.session, sequence
        self._open.add(mark)
        return mark

    def done(self, mark: Mark) -> None:
        """It is dealt with."""
        self._open.discard(mark)
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            self.save()

    def hear(self, chat: str, heard: ChatPosition, *, is_ours: bool) -> None:
        """A message was dealt with. Only chats in which somebody spoke to us are kept, the last ones."""
        known = self.newest.heard.get(chat)
        if known is None and not is_ours:
            return
        others = {name: other for name, other in self.newest.heard.items() if name != chat}
        while len(others) >= MOST_CHATS:
            del others[next(iter(others))]
        newest = known if known is not None and known.message > heard.message else heard
        self.newest = structs.replace(self.newest, heard={**others, chat: newest})
        if is_ours:
            self._saved_at = 0.0

    def _read(self) -> GatewayPosition:
        try:
            content = self._file.read_bytes() if self._file else b"{}"
            return msgspec.json.decode(content, type=GatewayPosition)
        except (OSError, msgspec.MsgspecError):
            return GatewayPosition()  # nothing to resume: Discord begins anew

    def save(self) -> None:
        """Write the file now."""
        self._saved_at = time.monotonic()
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # a full disk costs no more than the resuming
            replace_private(self._file, msgspec.json.encode(self.place), is_durable=False)
