"""The items of a transcript: the conversation as the model sees it."""

from enum import StrEnum

from msgspec import Struct


class Effect(StrEnum):
    """The known effect of a call: whether its tool ran, and whether it finished.

    `CONTINUES`: the call ended, but the child that it started is still running and reports when it ends.
    """

    NOT_STARTED = "not_started"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    CONTINUES = "continues"


class Attachment(Struct, frozen=True, omit_defaults=True):
    """A file or image attached to a message. `data` is base64; `path` is a file on this machine."""

    media_type: str
    name: str = ""
    data: str = ""
    path: str = ""


class Call(Struct, frozen=True, omit_defaults=True):
    """A tool call that the model requested.

    `arguments` is always the text of a JSON object. If the model sent anything else, that text is in `broken`.
    """

    id: str
    name: str
    arguments: str = "{}"
    broken: str = ""


class Reasoning(Struct, frozen=True, omit_defaults=True):
    """A finished piece of the model's reasoning, with the data that its API needs back in later requests.

    `behind_characters` and `behind_calls` count the characters and calls that precede it in the reply, because APIs
    require the original order.
    """

    text: str = ""
    signature: str = ""
    data: str = ""
    behind_characters: int = 0
    behind_calls: int = 0


class UserMessage(Struct, frozen=True, omit_defaults=True, tag="user", tag_field="role"):
    """A message from a user."""

    id: str
    text: str
    author: str = ""
    attachments: tuple[Attachment, ...] = ()


class AssistantMessage(Struct, frozen=True, omit_defaults=True, tag="assistant", tag_field="role"):
    """A reply from the model. `is_partial`: the reply was interrupted."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()
    is_partial: bool = False


class CallResult(Struct, frozen=True, omit_defaults=True, tag="tool", tag_field="role"):
    """The result of a call. Every call in a transcript has exactly one result."""

    call: str
    name: str
    text: str
    effect: Effect
    is_error: bool = False
    attachments: tuple[Attachment, ...] = ()


class Note(Struct, frozen=True, omit_defaults=True, tag="note", tag_field="role"):
    """Information for the model about the conversation itself, such as an interruption."""

    text: str


Message = UserMessage | AssistantMessage | CallResult | Note
