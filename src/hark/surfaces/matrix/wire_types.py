"""The homeserver's responses as structs. Users control event content, so it is parsed separately and may be invalid."""

from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

T = TypeVar("T")


class HomeserverError(Struct, frozen=True):
    """The body of an error response: the error code and its text."""

    errcode: str = ""
    error: str = ""
    retry_after_ms: float | None = None


class RoomEvent(Struct, frozen=True):
    """An event in a room, such as a message or a reaction."""

    type: str
    sender: str
    event_id: str = ""
    origin_server_ts: int = 0
    state_key: str | None = None
    redacts: str = ""
    content: Raw = Raw(b"{}")
    unsigned: Raw = Raw(b"{}")


class ReplyTo(Struct, frozen=True):
    """The event that a message replies to."""

    event_id: str = ""


class Relation(Struct, frozen=True, rename={"in_reply_to": "m.in_reply_to"}):
    """The relation to another event: `rel_type` is m.replace, m.thread, m.annotation, or "" for a reply."""

    rel_type: str = ""
    event_id: str = ""
    key: str = ""
    is_falling_back: bool = False
    in_reply_to: ReplyTo = ReplyTo()


class Mentions(Struct, frozen=True):
    """The users that a message mentions."""

    user_ids: tuple[str, ...] = ()


class FileInfo(Struct, frozen=True):
    """The media type and size of a file as stated by its sender."""

    mimetype: str = ""
    size: float = 0


class NewContent(Struct, frozen=True):
    """The new content of an edited message."""

    msgtype: str = ""
    body: str = ""
    mentions: Mentions = field(default=Mentions(), name="m.mentions")


class EventContent(Struct, frozen=True):
    """The content of a message event. A file without a `url` is encrypted."""

    msgtype: str = ""
    body: str = ""
    filename: str = ""
    url: str = ""
    info: FileInfo = FileInfo()
    redacts: str = ""
    membership: str = ""
    is_direct: bool = False
    voice: Raw | UnsetType = field(default=UNSET, name="org.matrix.msc3245.voice")
    mentions: Mentions = field(default=Mentions(), name="m.mentions")
    relation: Relation = field(default=Relation(), name="m.relates_to")
    new: NewContent | None = field(default=None, name="m.new_content")


class PreviousContent(Struct, frozen=True):
    """The previous content of a state event."""

    membership: str = ""


class BundledRelations(Struct, frozen=True):
    """The related events that the server bundles with an event."""

    replace: RoomEvent | None = field(default=None, name="m.replace")


class Unsigned(Struct, frozen=True):
    """The unsigned data that the server adds to an event."""

    prev_content: PreviousContent = PreviousContent()
    relations: BundledRelations = field(default=BundledRelations(), name="m.relations")


class RoomTimeline(Struct, frozen=True):
    """The new events of a room. If `limited` is true, earlier events were omitted; fetch them from `prev_batch`."""

    events: tuple[Raw, ...] = ()
    limited: bool = False
    prev_batch: str = ""


class JoinedRoom(Struct, frozen=True):
    """The updates for a room that the bot has joined."""

    timeline: RoomTimeline = RoomTimeline()


class InvitedRoom(Struct, frozen=True):
    """A room to which the bot is invited."""

    invite_state: RoomTimeline = RoomTimeline()


class RoomUpdates(Struct, frozen=True):
    """The updates for all rooms."""

    join: dict[str, JoinedRoom] = field(default_factory=dict[str, JoinedRoom])
    invite: dict[str, InvitedRoom] = field(default_factory=dict[str, InvitedRoom])


class SyncResponse(Struct, frozen=True):
    """The response to a sync request: all updates since a token."""

    next_batch: str
    rooms: RoomUpdates = RoomUpdates()


class EventPage(Struct, frozen=True):
    """A page of a room's past events, or of the events that relate to one event, newest first."""

    chunk: tuple[Raw, ...] = ()
    end: str | None = None


def parse_json(raw: bytes | Raw, struct_type: type[T]) -> T | None:
    """Return the parsed JSON, or None if it is invalid."""
    try:
        return msgspec.json.decode(raw, type=struct_type)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def events_of(raws: tuple[Raw, ...]) -> list[RoomEvent]:
    """Parse room events, skipping invalid ones."""
    return [event for raw in raws if (event := parse_json(raw, RoomEvent)) is not None]


def content_of(event: RoomEvent) -> EventContent:
    """Parse an event's content. If the content is invalid, return only its message type and text."""
    content = parse_json(event.content, EventContent)
    if content is not None:
        return content
    fallback = parse_json(event.content, NewContent) or NewContent()
    return EventContent(fallback.msgtype, fallback.body)
