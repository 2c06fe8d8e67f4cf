"""The transcript's items: what the model sees of a conversation."""

from enum import StrEnum

from msgspec import Struct


class Effect(StrEnum):
    """What is known of a call's doing."""

    NOT_STARTED = "not_started"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


class Attachment(Struct, frozen=True, omit_defaults=True):
    """A file or picture that came with a message: `data` is base64, `path` a file on this machine."""

    media_type: str
    name: str = ""
    data: str = ""
    path: str = ""


class Call(Struct, frozen=True, omit_defaults=True):
    """One use of a tool that the model asked for.

    `arguments` is always the text of a JSON object; what the model sent instead, if it was none, is in `broken`.
    """

    id: str
    name: str
    arguments: str = "{}"
    broken: str = ""


class Reasoning(Struct, frozen=True, omit_defaults=True):
    """A finished piece of the model's thinking, with what its API demands back.

    It stood behind so many characters of the reply's text and so many of its calls: APIs want it back in its place.
    """

    text: str = ""
    signature: str = ""
    data: str = ""
    behind_characters: int = 0
    behind_calls: int = 0


class UserMessage(Struct, frozen=True, omit_defaults=True, tag="user", tag_field="role"):
    """What a person said."""

    id: str
    text: str
    author: str = ""
    attachments: tuple[Attachment, ...] = ()


class AssistantMessage(Struct, frozen=True, omit_defaults=True, tag="assistant", tag_field="role"):
    """What the model said; `is_partial` when it was cut off."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: tuple[Reasoning, ...] = ()
    is_partial: bool = False


class CallResult(Struct, frozen=True, omit_defaults=True, tag="tool", tag_field="role"):
    """What came of a call. Every call in a transcript has exactly one."""

    call: str
    name: str
    text: str
    effect: Effect
    is_error: bool = False
    attachments: tuple[Attachment, ...] = ()


class Note(Struct, frozen=True, omit_defaults=True, tag="note", tag_field="role"):
    """What Hark tells the model about the conversation itself, such as an interruption."""

    text: str


Message = UserMessage | AssistantMessage | CallResult | Note
