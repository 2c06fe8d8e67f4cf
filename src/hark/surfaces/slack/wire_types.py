"""The parts of Slack's events that Hark reads, as structs."""

from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

T = TypeVar("T")


class SlackFile(Struct, frozen=True):
    """A file shared in a message."""

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


class SharedContent(Struct, frozen=True):
    """An attachment of a message, such as a shared message."""

    text: str = ""
    is_msg_unfurl: bool = False
    is_share: bool = False


class EditInfo(Struct, frozen=True):
    """The time of a message's last edit."""

    ts: str = ""


class SlackMessage(Struct, frozen=True):
    """A message, or a change with the new version in `message` and the old one in `previous_message`."""

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
    files: tuple[SlackFile, ...] = ()
    attachments: tuple[SharedContent, ...] = ()
    deleted_ts: str = ""
    message: "SlackMessage | None" = None
    previous_message: "SlackMessage | None" = None
    reply_users: tuple[str, ...] = ()
    edited: EditInfo = EditInfo()


class SlackUser(Struct, frozen=True):
    """The user who pressed a button."""

    id: str
    name: str = ""


class SlackChannel(Struct, frozen=True):
    """The channel of a button press."""

    id: str = ""


class ButtonAction(Struct, frozen=True):
    """A pressed button and its value."""

    action_id: str = ""
    action_ts: str = ""
    value: str = ""


class ButtonPress(Struct, frozen=True):
    """A button press, as Slack sends it."""

    user: SlackUser
    channel: SlackChannel = SlackChannel()
    message: SlackMessage = SlackMessage()
    actions: tuple[ButtonAction, ...] = ()


def parse_struct(value: Any, struct_type: type[T]) -> T | None:
    """Convert a value to one of the structs above. Return None if the value is invalid."""
    try:
        return msgspec.convert(_without_nulls(value), struct_type)
    except msgspec.ValidationError:
        return None


def _without_nulls(value: Any) -> Any:
    """Return a value without its nulls, because Slack uses null and a missing key interchangeably."""
    match value:
        case dict():
            table = cast("dict[str, Any]", value)
            return {key: _without_nulls(item) for key, item in table.items() if item is not None}
        case list():
            return [_without_nulls(item) for item in cast("list[Any]", value) if item is not None]
        case _:
            return value
