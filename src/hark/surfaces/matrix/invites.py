"""Whose invites are followed: those of people who may talk, and a stranger's into a chat of two, to be given a code."""

from collections.abc import Callable, Mapping

from hark.surfaces.matrix.wire_types import Invited, content_of, events_of
from hark.timing.rate_limit import RateLimit

STRANGERS_AN_HOUR = 20


class Invites:
    """Decides about each invite. Strangers can't fill us with rooms: an hour has only so many of them."""

    def __init__(self, me: str, may_talk: Callable[[str], bool]) -> None:
        self._me = me
        self._may_talk = may_talk
        self._direct: set[str] = set()
        self._strangers = RateLimit(STRANGERS_AN_HOUR, STRANGERS_AN_HOUR / 3600)

    def note(self, invited: Mapping[str, Invited]) -> None:
        """Learn which rooms are chats of two; the client library does not tell."""
        for room, invite in invited.items():
            events = events_of(invite.invite_state.events)
            mine = [content_of(event) for event in events if event.state_key == self._me]
            if any(content.membership == "invite" and content.is_direct for content in mine):
                self._direct.add(room)

    def is_followed(self, room: str, person: str) -> bool:
        """Tell whether to enter a room; counts it when it is a stranger's."""
        if self._may_talk(person):
            return True
        if room not in self._direct or not self._strangers.take():
            return False
        self._direct.discard(room)
        return True
