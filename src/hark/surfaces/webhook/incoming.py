"""Requests of one hook, as what a chat surface hears."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from hark.protocol.chat import Address, Author, Button, Incoming, Outgoing, Pressed, Removed, Rewritten, Written
from hark.protocol.names import address_session
from hark.surfaces.chat.recent_values import Recent
from hark.surfaces.web.api.attachments import SentAttachment, all_checked
from hark.surfaces.web.api.body import checked_text, decode_json
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.webhook.platform import HookSettings
from hark.surfaces.webhook.template import Template

MOST = 5_000
MOST_OPEN = 500
QUOTED_CHARACTERS = 500
NAME = "webhook"
DOCUMENT = "docs/webhook.md"
NAME_CHARACTERS = 200
SESSION_CHARACTERS = 200
_SECRET_HEADERS = ("authorization", "x-hub-signature", "x-hub-signature-256", "x-hark-signature", "cookie")


class RecentMessages:
    """Of too many the oldest are forgotten; a restart forgets all, and with it every open question."""

    def __init__(self) -> None:
        self._texts: Recent[str] = Recent(MOST)
        self._choices: OrderedDict[tuple[Address, str], Sequence[Button]] = OrderedDict()

    def heard(self, address: Address, message: str, text: str) -> None:
        """Keep what a program said."""
        self._texts.put((address, message), text[:QUOTED_CHARACTERS])

    def said(self, address: Address, message: str, new: Outgoing) -> None:
        """Keep what we said, or changed; a question that lost its choices is closed."""
        self.heard(address, message, new.text)
        self._choices.pop((address, message), None)
        if new.buttons:
            self._choices[address, message] = new.buttons
            if len(self._choices) > MOST_OPEN:
                self._choices.popitem(last=False)

    def text(self, address: Address, message: str) -> str:
        """Return a message's text, "" when it is not known."""
        return self._texts.get((address, message)) or ""

    def choices(self, address: Address) -> list[Button]:
        """Return the choices that are open there, the newest question's first."""
        open_here = [buttons for (where, _), buttons in reversed(self._choices.items()) if where == address]
        return [button for buttons in open_here for button in buttons]


class WebhookBody(Struct, frozen=True):
    """What a program sends. `answer` is a choice of a question: its text or its value, or free words.

    `type`: a message; another text for one that was sent; one that is taken back; or a stop of what runs.
    """

    id: str = ""
    type: Literal["message", "edit", "delete", "stop"] = "message"
    chat: str = ""
    thread: str = ""
    author: str = ""
    text: str = ""
    attachments: list[SentAttachment] = []
    reply_to: str = ""
    answer: str = ""
    at: float = 0.0


class WebhookReader:
    """Reads the bodies that come to one hook."""

    def __init__(self, name: str, settings: HookSettings, memory: RecentMessages) -> None:
        """Raises ValueError when a template is wrong."""
        self._name = name
        self._id_header = settings.id_header.lower()
        self._is_own = not settings.template
        self._text = Template(settings.template)
        self._chat, self._author, self._id = (Template(text) for text in (settings.chat, settings.author, settings.id))
        self._memory = memory

    def read(self, headers: Mapping[str, str], body: bytes) -> Incoming:
        """Return what a request says.

        Raises:
            ApiError: It can't be understood; the text says why.
        """
        sent = decode_json(body, WebhookBody, DOCUMENT) if self._is_own else self._foreign(headers, body)
        message = checked_text(self._name_of(sent, headers, body), "id", NAME_CHARACTERS, may_be_empty=False)
        address = self._address(sent)
        author = Author(self._name, checked_text(sent.author, "author", NAME_CHARACTERS) or self._name)
        match sent.type:
            case "stop":
                return Pressed(message, address, author, "stop:")
            case "delete":
                return Removed(message, address)
            case "edit":
                return Rewritten(message, address, author, sent.text, sent.at)
            case "message" if sent.answer:
                return self._answer(message, address, author, sent.answer)
            case "message":
                return self._written(message, address, author, sent)

    def _name_of(self, sent: WebhookBody, headers: Mapping[str, str], body: bytes) -> str:
        """Return what a message is known by when it comes again; a foreign payload without an id is its own."""
        named = sent.id or headers.get(self._id_header, "")
        return named if named or self._is_own else hashlib.sha256(body).hexdigest()[:32]

    def _foreign(self, headers: Mapping[str, str], body: bytes) -> WebhookBody:
        payload = decode_json(body, dict[str, Any], DOCUMENT)
        shown = {name: value for name, value in headers.items() if name not in _SECRET_HEADERS}
        told = {"headers": shown, **payload}
        chat, author, text, name = (one.fill(told) for one in (self._chat, self._author, self._text, self._id))
        return WebhookBody(id=name, chat=chat, author=author, text=text)

    def _address(self, sent: WebhookBody) -> Address:
        chat = checked_text(sent.chat, "chat", NAME_CHARACTERS)
        thread = checked_text(sent.thread, "thread", NAME_CHARACTERS)
        address = Address(NAME, f"{self._name}@{chat}" if chat else self._name, thread)
        if len(address_session(address)) > SESSION_CHARACTERS:
            raise ApiError(400, "bad_request", "chat and thread are too long together: they name a session.")
        return address

    def _answer(self, message: str, address: Address, author: Author, answer: str) -> Incoming:
        choices = self._memory.choices(address)
        value = next((button.value for button in choices if answer in (button.value, button.text)), None)
        if value is not None:
            return Pressed(message, address, author, value)
        wanted = [button.text for button in choices if button.value.startswith("answer:")]
        if wanted:
            raise ApiError(422, "bad_answer", f"That is none of the choices: {', '.join(map(repr, wanted))}.")
        return Written(message, address, author, answer)  # a question without choices asks for words

    def _written(self, message: str, address: Address, author: Author, sent: WebhookBody) -> Written:
        files = tuple(all_checked(sent.attachments))
        if not sent.text.strip() and not files:
            raise ApiError(400, "bad_request", "A message needs a text or an attachment.")
        is_voice = not sent.text.strip() and len(files) == 1 and files[0].media_type.startswith("audio/")
        self._memory.heard(address, message, sent.text)
        return Written(
            message,
            address,
            author,
            sent.text,
            () if is_voice else files,
            files[0] if is_voice else None,
            quoted=self._memory.text(address, sent.reply_to) or sent.reply_to,
            at=sent.at,
        )
