"""What was sent and is not known to be accepted yet: nothing of it is lost meanwhile."""

from typing import TYPE_CHECKING

from hark.protocol.commands import Delivery
from hark.protocol.names import is_child
from hark.protocol.session import Session
from hark.protocol.store import StoreError
from hark.surfaces.terminal.image_attachments import pictures_in

if TYPE_CHECKING:
    from hark.surfaces.terminal.app import TerminalApp


class PendingMessages:
    """Sends messages for the app, in order, each in a task of the app's."""

    def __init__(self, app: "TerminalApp") -> None:
        self._app = app
        self._texts: dict[str, tuple[str, str]] = {}  # each with its session

    @property
    def messages(self) -> list[str]:
        """The ids of the messages that are on their way to the session on the screen."""
        return [message for message, (session, _) in self._texts.items() if session == self._app.session.id]

    @property
    def texts(self) -> list[str]:
        """What is on its way."""
        return [text for _, text in self._texts.values()]

    def forget(self, message: str) -> None:
        """A receipt came: the message is accepted."""
        self._texts.pop(message, None)

    def send(self, message: str, text: str, delivery: Delivery | None, to: Session | None = None) -> None:
        """Send a message to a session, or the one on the screen; returns at once."""
        session = to or self._app.session
        if delivery is None and is_child(session.id):
            delivery = Delivery.STEER  # a message that cut a child's turn would end its work for its parent
        self._texts[message] = session.id, text
        self._app.start(self.say(session, message, text, delivery))

    async def say(self, session: Session, message: str, text: str, delivery: Delivery | None) -> None:
        """Say it; the person sees what became of it, and has the words back if they were not accepted."""
        log, composer = self._app.log_view, self._app.composer
        pictures, wrong = pictures_in(text, self._app.place.workspace)
        for problem in wrong:
            log.tell(problem)
        try:
            receipt = await session.say(text, delivery, id=message, attachments=pictures)
        except StoreError as error:
            log.became(message, f"not accepted: {error}. Up brings it back.")
            if not composer.text:
                composer.put(text)
            return
        finally:
            self._texts.pop(message, None)
        log.accepted(receipt)
        if pictures:
            log.tell("with " + ", ".join(picture.name for picture in pictures))
