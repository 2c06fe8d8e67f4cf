"""What a homeserver says, as typed words; content is a person's, so it is read apart and may be nonsense."""

from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

T = TypeVar("T")


class HomeserverError(Struct, frozen=True):
    """Why a request was refused."""

    errcode: str = ""
    error: str = ""
    retry_after_ms: float | None = None


class RoomEvent(Struct, frozen=True):
    """Something that happened in a room."""

    type: str
    sender: str
    event_id: str = ""
    origin_server_ts: int = 0
    state_key: str | None = None
    redacts: str = ""
    content: Raw = Raw(b"{}")
    unsigned: Raw = Raw(b"{}")


class ReplyTo(Struct, frozen=True):
    """Which message is answered."""

    event_id: str = ""


class Relation(Struct, frozen=True, rename={"in_reply_to": "m.in_reply_to"}):
    """How a message belongs to another: rel_type is m.replace, m.thread, m.annotation, or "" for a reply."""

    rel_type: str = ""
    event_id: str = ""
    key: str = ""
    is_falling_back: bool = False
    in_reply_to: ReplyTo = ReplyTo()


class Mentions(Struct, frozen=True):
    """Who is spoken to."""

    user_ids: tuple[str, ...] = ()


class FileInfo(Struct, frozen=True):
    """What a sender says about a file."""

    mimetype: str = ""
    size: float = 0


class NewContent(Struct, frozen=True):
    """The text that a message has now."""

    msgtype: str = ""
    body: str = ""
    mentions: Mentions = field(default=Mentions(), name="m.mentions")


class Content(Struct, frozen=True):
    """What a message says. Without a `url` its file is encrypted."""

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
    """What a state was before."""

    membership: str = ""


class Bundle(Struct, frozen=True):
    """What the server knows to belong to an event."""

    replace: RoomEvent | None = field(default=None, name="m.replace")


class Unsigned(Struct, frozen=True):
    """What the server adds to an event."""

    prev_content: PreviousContent = PreviousContent()
    relations: Bundle = field(default=Bundle(), name="m.relations")


class RoomTimeline(Struct, frozen=True):
    """What happened in a room since; when `limited`, more did, before `prev_batch`."""

    events: tuple[Raw, ...] = ()
    limited: bool = False
    prev_batch: str = ""


class JoinedRoom(Struct, frozen=True):
    """News of a room that we are in."""

    timeline: RoomTimeline = RoomTimeline()


class Invited(Struct, frozen=True):
    """A room that we are asked into."""

    invite_state: RoomTimeline = RoomTimeline()


class Rooms(Struct, frozen=True):
    """News of all rooms."""

    join: dict[str, JoinedRoom] = field(default_factory=dict[str, JoinedRoom])
    invite: dict[str, Invited] = field(default_factory=dict[str, Invited])


class Synced(Struct, frozen=True):
    """All news since a token."""

    next_batch: str
    rooms: Rooms = Rooms()


class EventPage(Struct, frozen=True):
    """A page of a room's past, or of what belongs to an event; the newest first."""

    chunk: tuple[Raw, ...] = ()
    end: str | None = None


def understood(raw: bytes | Raw, kind: type[T]) -> T | None:
    """Return what is said; None when it is nonsense."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def events_of(raws: tuple[Raw, ...]) -> list[RoomEvent]:
    """Return the events that can be understood."""
    return [event for raw in raws if (event := understood(raw, RoomEvent)) is not None]


def content_of(event: RoomEvent) -> Content:
    """Return what an event says; its words alone when the rest is nonsense."""
    content = understood(event.content, Content)
    if content is not None:
        return content
    words = understood(event.content, NewContent) or NewContent()
    return Content(words.msgtype, words.body)
