"""Whose invites are followed: those of people who may talk, and a stranger's into a chat of two, to be given a code."""

import time
from collections import deque
from collections.abc import Callable, Mapping

from hark.surfaces.matrix.wire_types import Invited, content_of, events_of

STRANGERS_AN_HOUR = 20


class Invites:
    """Decides about each invite. Strangers can't fill us with rooms: an hour has only so many of them."""

    def __init__(self, me: str, may_talk: Callable[[str], bool]) -> None:
        self._me = me
        self._may_talk = may_talk
        self._direct: set[str] = set()
        self._times: deque[float] = deque()

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
        now = time.monotonic()
        while self._times and now - self._times[0] > 3600:
            self._times.popleft()
        if room not in self._direct or len(self._times) >= STRANGERS_AN_HOUR:
            return False
        self._direct.discard(room)
        self._times.append(now)
        return True
