"""What was sent and is not known to be accepted yet: nothing of it is lost meanwhile."""

import base64
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from hark.protocol.commands import Delivery
from hark.protocol.messages import Attachment
from hark.protocol.names import is_child
from hark.protocol.session import Session
from hark.protocol.store import StoreError
from hark.surfaces.terminal.conversation_log import ConversationLog
from hark.surfaces.terminal.widgets.composer import Composer

MOST_BYTES = 5_000_000
_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
_NAMED = re.compile(r"\.(?:png|jpe?g|gif|webp)\b", re.IGNORECASE)
_PATH = re.compile(r"""(?:^|\s)@?(?:'([^']+)'|"([^"]+)"|((?:\\\s|\S)+))""")


class PendingMessages:
    """Sends messages, in order, each in a task that `start` begins."""

    def __init__(
        self,
        log: ConversationLog,
        composer: Composer,
        workspace: Path,
        start: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._log = log
        self._composer = composer
        self._workspace = workspace
        self._start = start
        self._texts: dict[str, tuple[str, str]] = {}  # each with its session

    @property
    def texts(self) -> list[str]:
        """What is on its way."""
        return [text for _, text in self._texts.values()]

    def messages(self, session: str) -> list[str]:
        """Return the ids of the messages that are on their way to a session."""
        return [message for message, (to, _) in self._texts.items() if to == session]

    def forget(self, message: str) -> None:
        """A receipt came: the message is accepted."""
        self._texts.pop(message, None)

    def send(self, session: Session, message: str, text: str, delivery: Delivery | None = None) -> None:
        """Send a message to a session; returns at once."""
        if delivery is None and is_child(session.id):
            delivery = Delivery.STEER  # a message that cut a child's turn would end its work for its parent
        self._texts[message] = session.id, text
        self._start(self.say(session, message, text, delivery))

    async def say(self, session: Session, message: str, text: str, delivery: Delivery | None) -> None:
        """Say it; the person sees what became of it, and has the words back if they were not accepted."""
        pictures, wrong = pictures_in(text, self._workspace)
        for problem in wrong:
            self._log.tell(problem)
        try:
            receipt = await session.say(text, delivery, id=message, attachments=pictures)
        except StoreError as error:
            self._log.became(message, f"not accepted: {error}. Up brings it back.")
            if not self._composer.text:
                self._composer.put(text)
            return
        finally:
            self._texts.pop(message, None)
        self._log.accepted(receipt)
        if pictures:
            self._log.tell("with " + ", ".join(picture.name for picture in pictures))


def pictures_in(text: str, workspace: Path) -> tuple[list[Attachment], list[str]]:
    """Return the pictures that a text names, and what was wrong with those that can't go along."""
    found: list[Attachment] = []
    wrong: list[str] = []
    for match in _PATH.finditer(text) if _NAMED.search(text) else ():
        name = next(group for group in match.groups() if group).replace("\\ ", " ").removeprefix("file://")
        kind = _TYPES.get(Path(name).suffix.lower())
        if kind is None:
            continue
        path = workspace / Path(name).expanduser()
        try:
            if not path.is_file():
                continue
            data = path.read_bytes() if path.stat().st_size <= MOST_BYTES else None
        except OSError as error:
            wrong.append(f"{name} can't be read: {error}")
            continue
        if data is None:
            wrong.append(f"{name} is larger than {MOST_BYTES // 1_000_000} MB and was not sent along")
        else:
            found.append(Attachment(kind, path.name, base64.b64encode(data).decode(), str(path)))
    return found, wrong
