"""Slack's own words: the parts of its events that are read here."""

from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

T = TypeVar("T")


class File(Struct, frozen=True):
    """A file that was shared."""

    id: str = ""
    name: str = ""
    mimetype: str = ""
    size: int = 0
    mode: str = ""
    subtype: str = ""
    url_private: str = ""
    url_private_download: str = ""
    is_external: bool = False
    file_access: str = ""


class Shared(Struct, frozen=True):
    """What is attached to a message, such as another message that was shared."""

    text: str = ""
    is_msg_unfurl: bool = False
    is_share: bool = False


class EditInfo(Struct, frozen=True):
    """When a message was edited."""

    ts: str = ""


class Message(Struct, frozen=True):
    """A message, or what happened to one: then it is in `message`, and as it was in `previous_message`."""

    type: str = ""
    subtype: str = ""
    ts: str = ""
    thread_ts: str = ""
    channel: str = ""
    user: str = ""
    bot_id: str = ""
    parent_user_id: str = ""
    client_msg_id: str = ""
    text: str = ""
    files: tuple[File, ...] = ()
    attachments: tuple[Shared, ...] = ()
    deleted_ts: str = ""
    message: "Message | None" = None
    previous_message: "Message | None" = None
    reply_users: tuple[str, ...] = ()
    edited: EditInfo = EditInfo()


class Person(Struct, frozen=True):
    """Who pressed."""

    id: str
    name: str = ""


class SlackChannel(Struct, frozen=True):
    """A channel."""

    id: str = ""


class Action(Struct, frozen=True):
    """A button, as it was pressed."""

    action_id: str = ""
    action_ts: str = ""
    value: str = ""


class Press(Struct, frozen=True):
    """Buttons that were pressed."""

    user: Person
    channel: SlackChannel = SlackChannel()
    message: Message = Message()
    actions: tuple[Action, ...] = ()


def read(value: Any, kind: type[T]) -> T | None:
    """Return a value as one of the above; None when it can't be read."""
    try:
        return msgspec.convert(_said(value), kind)
    except msgspec.ValidationError:
        return None


def _said(value: Any) -> Any:
    """Return a value without its nulls: for Slack they say the same as a missing key."""
    match value:
        case dict():
            table = cast("dict[str, Any]", value)
            return {key: _said(item) for key, item in table.items() if item is not None}
        case list():
            return [_said(item) for item in cast("list[Any]", value) if item is not None]
        case _:
            return value
