"""Messages that were sent but not yet accepted. Their text is not lost if the store fails."""

import base64
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from hark.protocol.commands import Delivery
from hark.protocol.messages import Attachment
from hark.protocol.names import is_child
from hark.protocol.receipts import ReceiptState
from hark.protocol.session import Session
from hark.protocol.store import StoreError
from hark.surfaces.terminal.conversation_log import ConversationLog
from hark.surfaces.terminal.widgets.composer import Composer

MAX_IMAGE_BYTES = 5_000_000
_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
_IMAGE_EXTENSION = re.compile(r"\.(?:png|jpe?g|gif|webp)\b", re.IGNORECASE)
_PATH = re.compile(r"""(?:^|\s)@?(?:'([^']+)'|"([^"]+)"|((?:\\\s|\S)+))""")


class PendingMessages:
    """Sends messages in order. `start` runs each coroutine as a task."""

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
        self._pending: dict[str, tuple[str, str]] = {}  # message id -> (session id, text)

    @property
    def texts(self) -> list[str]:
        """The texts of all messages that have not been accepted."""
        return [text for _, text in self._pending.values()]

    def message_ids(self, session: str) -> list[str]:
        """Return the ids of a session's messages that have not been accepted."""
        return [message for message, (to, _) in self._pending.items() if to == session]

    def mark_accepted(self, message: str) -> None:
        """Remove a message for which a receipt has arrived."""
        self._pending.pop(message, None)

    def send(self, session: Session, message: str, text: str, delivery: Delivery | None = None) -> None:
        """Send a message to a session. Returns immediately."""
        if delivery is None and is_child(session.id):
            delivery = Delivery.STEER  # an interrupt would end the child's work for its parent
        self._pending[message] = session.id, text
        self._start(self.deliver(session, message, text, delivery))

    async def deliver(self, session: Session, message: str, text: str, delivery: Delivery | None) -> None:
        """Send a message and show its receipt. If it isn't accepted, put its text into an empty input line."""
        pictures, problems = find_images(text, self._workspace)
        for problem in problems:
            self._log.show_notice(problem)
        try:
            receipt = await session.say(text, delivery, id=message, attachments=pictures)
        except StoreError as error:
            return self._return_text(message, text, str(error))
        finally:
            self._pending.pop(message, None)
        if receipt.state is ReceiptState.REFUSED:
            return self._return_text(message, text, (receipt.reason or "").rstrip("."))
        self._log.show_receipt(receipt)
        if pictures:
            self._log.show_notice("Attached: " + ", ".join(picture.name for picture in pictures))
        return None

    def _return_text(self, message: str, text: str, reason: str) -> None:
        self._log.set_receipt(message, f"not accepted: {reason}. Press Up to get the text back.")
        if not self._composer.text:
            self._composer.set_text(text)


def find_images(text: str, workspace: Path) -> tuple[list[Attachment], list[str]]:
    """Return the images whose paths appear in a text, and an error message for each image that can't be attached."""
    found: list[Attachment] = []
    problems: list[str] = []
    for match in _PATH.finditer(text) if _IMAGE_EXTENSION.search(text) else ():
        name = next(group for group in match.groups() if group).replace("\\ ", " ").removeprefix("file://")
        media_type = _TYPES.get(Path(name).suffix.lower())
        if media_type is None:
            continue
        path = workspace / Path(name).expanduser()
        try:
            if not path.is_file():
                continue
            data = path.read_bytes() if path.stat().st_size <= MAX_IMAGE_BYTES else None
        except OSError as error:
            problems.append(f"Could not read {name}: {error}")
            continue
        if data is None:
            problems.append(f"{name} is larger than {MAX_IMAGE_BYTES // 1_000_000} MB and was not attached")
        else:
            found.append(Attachment(media_type, path.name, base64.b64encode(data).decode(), str(path)))
    return found, problems
