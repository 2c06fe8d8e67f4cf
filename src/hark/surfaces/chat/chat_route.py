"""What stands at the two ends of a conversation: an address of a platform, and a session."""

from dataclasses import dataclass

from hark.protocol.chat import Address, ChatSurface
from hark.protocol.session import Session
from hark.surfaces.chat.message_batch import THROUGH
from hark.surfaces.chat.settings import ChatSettings


@dataclass(frozen=True, slots=True)
class ChatRoute:
    """The platform, the address on it, the session behind it, and the surface's settings."""

    surface: ChatSurface
    address: Address
    session: Session
    settings: ChatSettings

    def name_of(self, message: str) -> str:
        """Return what the session calls a message of the platform."""
        return self._prefix + message

    def own_name_of(self, what: str) -> str:
        """Return what the session calls a message that stands for something else, such as a button."""
        return f"~{self._prefix}{what}"

    def message_of(self, name: str) -> str:
        """Return the platform's id of a message that came from here (of its first part); "" for one that did not."""
        return name.removeprefix(self._prefix).partition(THROUGH)[0] if name.startswith(self._prefix) else ""

    @property
    def _prefix(self) -> str:
        return f"{self.address.surface}:{self.address.chat}:{self.address.thread}:"
