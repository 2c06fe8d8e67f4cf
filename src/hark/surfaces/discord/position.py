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
    """Kept in a file, if there is one. Discord replays what follows `sequence` to whoever resumes the session."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._place = GatewayPosition()
        self._open: set[Mark] = set()
        self._behind: set[str] = set()
        self._saved_at = 0.0

    @property
    def place(self) -> GatewayPosition:
        """Where to go on: behind the last event before which all were dealt with.

        While there are chats to be caught up with, there is no session to resume: they are read again instead.
        """
        if self._behind:
            return structs.replace(self._place, session="", gateway="", sequence=0)
        first = min((sequence for session, sequence in self._open if session == self._place.session), default=None)
        return self._place if first is None else structs.replace(self._place, sequence=first - 1)

    @property
    def newest(self) -> GatewayPosition:
        """Where to go on while what is open is still being dealt with: behind the last event that has come."""
        return self._place

    def load(self, bot: str) -> None:
        """Go on where this bot was; what was open is not dealt with."""
        self._place = self.place if self._place.bot else self._read()
        self._open.clear()
        self._behind.clear()
        if self._place.bot != bot:
            self._place = GatewayPosition(bot)

    def begin(self, session: str, gateway: str, sequence: int) -> None:
        """A new session has begun."""
        self._place = structs.replace(self._place, session=session, gateway=gateway, sequence=sequence)
        self._save()

    def fall_behind(self, chat: str) -> None:
        """This chat must be caught up with."""
        self._behind.add(chat)

    def catch_up(self, chat: str) -> None:
        """All that was missed in this chat was dealt with."""
        self._behind.discard(chat)

    def forget(self) -> None:
        """The session is gone: there is nothing to resume."""
        self._place = structs.replace(self._place, session="", gateway="", sequence=0)

    def reach(self, sequence: int) -> None:
        """This event has come; what is open before it stays open."""
        self._place = structs.replace(self._place, sequence=sequence)

    def open(self, sequence: int) -> Mark:
        """This event is being dealt with."""
        mark = self._place.session, sequence
        self._open.add(mark)
        return mark

    def done(self, mark: Mark) -> None:
        """It is dealt with."""
        self._open.discard(mark)
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            self._save()

    def hear(self, chat: str, heard: ChatPosition, *, is_ours: bool) -> None:
        """A message was dealt with. Only chats in which somebody spoke to us are kept, the last ones."""
        known = self._place.heard.get(chat)
        if known is None and not is_ours:
            return
        others = {name: other for name, other in self._place.heard.items() if name != chat}
        while len(others) >= MOST_CHATS:
            del others[next(iter(others))]
        newest = known if known is not None and known.message > heard.message else heard
        self._place = structs.replace(self._place, heard={**others, chat: newest})
        if is_ours:
            self._saved_at = 0.0

    def save(self) -> None:
        """Keep it now."""
        self._save()

    def _read(self) -> GatewayPosition:
        try:
            return (
                msgspec.json.decode(self._file.read_bytes(), type=GatewayPosition) if self._file else GatewayPosition()
            )
        except (OSError, msgspec.MsgspecError):
            return GatewayPosition()  # nothing to resume: Discord begins anew

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # a full disk costs no more than the resuming
            replace_private(self._file, msgspec.json.encode(self.place), is_durable=False)
