"""Convert the requests to one hook into incoming messages, edits, deletions, answers and stops."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from hark.protocol.chat import (
    Address,
    Author,
    Button,
    ButtonPressed,
    IncomingEvent,
    IncomingMessage,
    MessageDeleted,
    MessageEdited,
    OutgoingMessage,
)
from hark.protocol.names import session_of_address
from hark.surfaces.chat.recent_values import RecentValues
from hark.surfaces.web.api.attachments import AttachmentUpload, validate_attachments
from hark.surfaces.web.api.body import decode_json, validate_text
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.webhook.platform import HookSettings
from hark.surfaces.webhook.template import Template

MAX_MESSAGES = 5_000
MAX_OPEN_QUESTIONS = 500
MAX_QUOTED_CHARACTERS = 500
SURFACE_NAME = "webhook"
DOCS_PAGE = "docs/webhook.md"
MAX_NAME_CHARACTERS = 200
MAX_SESSION_CHARACTERS = 200
_SECRET_HEADERS = ("authorization", "x-hub-signature", "x-hub-signature-256", "x-hark-signature", "cookie")


class RecentMessages:
    """Recent messages and open questions, limited in number. Not persisted: a restart ends every question."""

    def __init__(self) -> None:
        self._texts: RecentValues[str] = RecentValues(MAX_MESSAGES)
        self._choices: OrderedDict[tuple[Address, str], Sequence[Button]] = OrderedDict()

    def record_received(self, address: Address, message_id: str, text: str) -> None:
        """Record a message that a program sent."""
        self._texts.put((address, message_id), text[:MAX_QUOTED_CHARACTERS])

    def record_sent(self, address: Address, message_id: str, new: OutgoingMessage) -> None:
        """Record a message that the bot sent or edited. A question whose choices were removed is closed."""
        self.record_received(address, message_id, new.text)
        self._choices.pop((address, message_id), None)
        if new.buttons:
            self._choices[address, message_id] = new.buttons
            if len(self._choices) > MAX_OPEN_QUESTIONS:
                self._choices.popitem(last=False)

    def text_of(self, address: Address, message_id: str) -> str:
        """Return the text of a message, or "" if it is unknown."""
        return self._texts.get((address, message_id)) or ""

    def open_choices(self, address: Address) -> list[Button]:
        """Return the choices of all questions open at an address, newest question first."""
        open_here = [buttons for (chat, _), buttons in reversed(self._choices.items()) if chat == address]
        return [button for buttons in open_here for button in buttons]


class WebhookBody(Struct, frozen=True):
    """The body of a program's request.

    `type`: a message, the edit or deletion of a message, or a stop. `answer` is a choice's text or value, or free
    text.
    """

    id: str = ""
    type: Literal["message", "edit", "delete", "stop"] = "message"
    chat: str = ""
    thread: str = ""
    author: str = ""
    text: str = ""
    attachments: list[AttachmentUpload] = []
    reply_to: str = ""
    answer: str = ""
    at: float = 0.0


class WebhookReader:
    """Reads the request bodies of one hook."""

    def __init__(self, name: str, settings: HookSettings, messages: RecentMessages) -> None:
        """Create a reader. Raises ValueError if a template is invalid."""
        self._name = name
        self._id_header = settings.id_header.lower()
        self._is_native = not settings.template
        self._text = Template(settings.template)
        self._chat, self._author, self._id = (Template(text) for text in (settings.chat, settings.author, settings.id))
        self._messages = messages

    def read(self, headers: Mapping[str, str], body: bytes) -> IncomingEvent:
        """Convert a request to an incoming event.

        Raises:
            ApiError: The request is invalid. The error's text contains the reason.
        """
        request = decode_json(body, WebhookBody, DOCS_PAGE) if self._is_native else self._parse_foreign(headers, body)
        message_id = validate_text(
            self._message_id(request, headers, body), "id", MAX_NAME_CHARACTERS, may_be_empty=False
        )
        address = self._address_of(request)
        author = Author(self._name, validate_text(request.author, "author", MAX_NAME_CHARACTERS) or self._name)
        match request.type:
            case "stop":
                return ButtonPressed(message_id, address, author, "stop:")
            case "delete":
                return MessageDeleted(message_id, address)
            case "edit":
                return MessageEdited(message_id, address, author, request.text, request.at)
            case "message" if request.answer:
                return self._read_answer(message_id, address, author, request.answer)
            case "message":
                return self._read_message(message_id, address, author, request)

    def _message_id(self, request: WebhookBody, headers: Mapping[str, str], body: bytes) -> str:
        """Return the id for detecting repeated messages, which is a hash for a foreign payload without an id."""
        given_id = request.id or headers.get(self._id_header, "")
        return given_id if given_id or self._is_native else hashlib.sha256(body).hexdigest()[:32]

    def _parse_foreign(self, headers: Mapping[str, str], body: bytes) -> WebhookBody:
        payload = decode_json(body, dict[str, Any], DOCS_PAGE)
        public_headers = {name: value for name, value in headers.items() if name not in _SECRET_HEADERS}
        values = {"headers": public_headers, **payload}
        chat, author, text, name = (part.fill(values) for part in (self._chat, self._author, self._text, self._id))
        return WebhookBody(id=name, chat=chat, author=author, text=text)

    def _address_of(self, request: WebhookBody) -> Address:
        chat = validate_text(request.chat, "chat", MAX_NAME_CHARACTERS)
        thread = validate_text(request.thread, "thread", MAX_NAME_CHARACTERS)
        address = Address(SURFACE_NAME, f"{self._name}@{chat}" if chat else self._name, thread)
        if len(session_of_address(address)) > MAX_SESSION_CHARACTERS:
            raise ApiError(400, "bad_request", "chat and thread are too long. They form the session name.")
        return address

    def _read_answer(self, message_id: str, address: Address, author: Author, answer: str) -> IncomingEvent:
        choices = self._messages.open_choices(address)
        value = next((button.value for button in choices if answer in (button.value, button.text)), None)
        if value is not None:
            return ButtonPressed(message_id, address, author, value)
        texts = [button.text for button in choices if button.value.startswith("answer:")]
        if texts:
            raise ApiError(422, "bad_answer", f"The answer is not one of the choices: {', '.join(map(repr, texts))}.")
        return IncomingMessage(message_id, address, author, answer, is_answer=True)

    def _read_message(self, message_id: str, address: Address, author: Author, request: WebhookBody) -> IncomingMessage:
        files = tuple(validate_attachments(request.attachments))
        if not request.text.strip() and not files:
            raise ApiError(400, "bad_request", "A message needs a text or an attachment.")
        is_voice = not request.text.strip() and len(files) == 1 and files[0].media_type.startswith("audio/")
        self._messages.record_received(address, message_id, request.text)
        return IncomingMessage(
            message_id,
            address,
            author,
            request.text,
            () if is_voice else files,
            files[0] if is_voice else None,
            quoted=self._messages.text_of(address, request.reply_to) or request.reply_to,
            at=request.at,
            replied_to=request.reply_to,
        )
