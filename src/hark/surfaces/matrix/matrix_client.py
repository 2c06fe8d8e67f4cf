"""Typed calls to a Matrix homeserver. Only this module uses the client library, whose errors it translates."""

import io
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote

import aiohttp

from hark.protocol.chat import ChatError, ChatGone
from hark.surfaces.chat.download import CHUNK_BYTES, FETCH_SECONDS
from hark.surfaces.matrix.wire_types import EventPage, HomeserverError, RoomEvent, SyncResponse, events_of, parse_json

if TYPE_CHECKING:
    import nio  # pyright: ignore[reportMissingTypeStubs]

T = TypeVar("T")
ResponseBody = dict[str, Any]  # a response whose shape the client library has checked

REQUEST_SECONDS = 30
SYNC_SECONDS = 30
EVENT_TYPES = ["m.room.message", "m.room.redaction", "m.reaction", "m.room.encrypted", "m.room.member"]


def _sync_filter(**more: Any) -> dict[str, Any]:
    """Return the sync filter: only the event types that we read, and no room state, which can be large."""
    none: dict[str, Any] = {"types": []}
    room = {"timeline": {"limit": 50, "types": EVENT_TYPES}, "state": none, "ephemeral": none, "account_data": none}
    return {"presence": none, "account_data": none, "room": room, **more}


class MatrixClient:
    """The homeserver's API for one account, over pooled connections. Every call can raise ChatError or be cancelled."""

    def __init__(self, homeserver: str, token: str) -> None:
        import nio  # pyright: ignore[reportMissingTypeStubs]

        # The library would log complete messages.
        logging.getLogger("nio").setLevel(logging.WARNING)
        # The library would retry silently. Here the caller decides about retries.
        config = nio.AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0, request_timeout=REQUEST_SECONDS)
        self._open_client = nio.AsyncClient(homeserver.rstrip("/"), config=config)
        self._open_client.access_token = token
        self._headers = {"Authorization": f"Bearer {token}"}
        self._is_closed = False

    async def close(self) -> None:
        """Close all connections. Later requests fail."""
        self._is_closed = True
        await self._open_client.close()

    @property
    def _client(self) -> "nio.AsyncClient":
        if self._is_closed:  # the library would open a new connection and never close it
            raise ChatError("The homeserver can't be reached: the connection was closed.")
        return self._open_client

    # Receiving.

    async def who_am_i(self) -> tuple[str, str]:
        """Return the account's user id and display name."""
        user_id = str((await self._call(self._client.whoami(), ResponseBody))["user_id"])
        try:
            profile = await self._call(self._client.get_displayname(user_id), ResponseBody)
        except ChatGone:
            profile = {}
        return user_id, str(profile.get("displayname") or user_id[1:].partition(":")[0])

    async def sync(self, since: str) -> SyncResponse:
        """Wait for events after the token `since`. If `since` is "", return the current token immediately."""
        if since:
            return await self._call(self._client.sync(SYNC_SECONDS * 1000, _sync_filter(), since), SyncResponse)
        # Homeservers cache responses for some minutes. A unique filter makes sure that the token is current.
        unique_filter = _sync_filter(presence={"types": [], "not_senders": [f"@{uuid.uuid4().hex}:x"]})
        return await self._call(self._client.sync(1, unique_filter), SyncResponse)

    async def load_members(self, room: str) -> None:
        """Load the members of a room. Later sync events keep the list up to date."""
        await self._call(self._client.joined_members(room), ResponseBody)

    async def fetch_page(self, room: str, start: str, end: str) -> EventPage:
        """Return a page of a room's past events, going backwards from `start` and no further than `end`."""
        message_filter = {"types": EVENT_TYPES}
        return await self._call(
            self._client.room_messages(room, start, end or None, limit=100, message_filter=message_filter), EventPage
        )

    async def fetch_event(self, room: str, event_id: str) -> RoomEvent:
        """Fetch one event from a room."""
        return await self._call(self._client.room_get_event(room, event_id), RoomEvent)

    async def fetch_own_reactions(self, room: str, event_id: str) -> list[str]:
        """Return the event ids of the bot's own reactions among the newest reactions to an event."""
        path = f"/_matrix/client/v1/rooms/{quote(room)}/relations/{quote(event_id)}/m.annotation/m.reaction?limit=100"
        try:
            response = await self._client.send("GET", path, headers=self._headers)
            body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable_error(error) from error
        if response.status != 200:
            raise translate_refusal(response.status, body, response.headers.get("Retry-After", ""))
        reactions = events_of((parse_json(body, EventPage) or EventPage()).chunk)
        return [reaction.event_id for reaction in reactions if reaction.sender == self._client.user_id]

    async def stream_media(self, server: str, media_id: str) -> AsyncGenerator[bytes]:
        """Yield the content of an uploaded file in chunks. Also raises aiohttp's errors."""
        path = f"/_matrix/client/v1/media/download/{quote(server)}/{quote(media_id)}"
        response = await self._client.send("GET", path, headers=self._headers, timeout=FETCH_SECONDS)
        try:
            if response.status != 200:
                raise translate_refusal(response.status, await response.read(), response.headers.get("Retry-After", ""))
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                yield chunk
        finally:
            response.close()

    def pending_invites(self) -> dict[str, str]:
        """Return the rooms to which the bot is invited, with the user id of the inviter."""
        return {room: invited.inviter or "" for room, invited in self._client.invited_rooms.items()}

    def forget_invite(self, room: str) -> None:
        """Remove a room from the pending invites."""
        self._client.invited_rooms.pop(room, None)

    def member_count(self, room: str) -> int:
        """Return the number of members in a room, including the bot, or 0 if the room is unknown."""
        known = self._client.rooms.get(room)
        return known.joined_count if known is not None else 0

    def display_name(self, room: str, user_id: str) -> str:
        """Return a user's display name in a room. Users with the same display name get distinct names."""
        known = self._client.rooms.get(room)
        return (known.user_name(user_id) if known is not None else None) or user_id

    # Sending.

    async def join(self, room: str) -> None:
        """Join a room."""
        await self._call(self._client.join(room), ResponseBody)

    async def send_event(self, room: str, event_type: str, content: dict[str, Any], transaction: str) -> str:
        """Send an event and return its id. Reusing a `transaction` id returns the same event id and sends nothing."""
        return str(
            (await self._call(self._client.room_send(room, event_type, content, transaction), ResponseBody))["event_id"]
        )

    async def redact(self, room: str, event_id: str) -> None:
        """Redact an event that the bot sent."""
        await self._call(self._client.room_redact(room, event_id), ResponseBody)

    async def show_typing(self, room: str, seconds: float) -> None:
        """Show the typing indicator for `seconds`."""
        await self._call(self._client.room_typing(room, True, int(seconds * 1000)), ResponseBody)

    async def upload(self, data: bytes, media_type: str, name: str) -> str:
        """Upload a file to the homeserver and return its mxc:// URI."""

        async def upload_file() -> "nio.Response":
            answer, _ = await self._client.upload(io.BytesIO(data), media_type, name, filesize=len(data))
            return answer

        return str((await self._call(upload_file(), ResponseBody))["content_uri"])

    async def _call(self, request: "Awaitable[nio.Response]", response_type: type[T]) -> T:
        import nio  # pyright: ignore[reportMissingTypeStubs]

        try:
            response = await request
            transport = cast("aiohttp.ClientResponse", response.transport_response)
            body = await transport.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable_error(error) from error
        except (nio.LocalProtocolError, ValueError) as error:
            raise ChatError(f"The homeserver's response could not be processed: {type(error).__name__}.") from error
        if transport.status != 200:
            raise translate_refusal(transport.status, body, transport.headers.get("Retry-After", ""))
        answer = parse_json(body, response_type)
        if answer is None or isinstance(response, nio.ErrorResponse):
            raise ChatError("The server's response is not a Matrix response. Check api_base.")
        return answer


def translate_refusal(status: int, body: bytes, retry_after: str) -> ChatError:
    """Return the ChatError for a refused request."""
    details = parse_json(body, HomeserverError) or HomeserverError()
    reason = f"{details.errcode} {details.error}".strip()[:300] or f"status {status}"
    if status == 429:
        seconds = details.retry_after_ms / 1000 if details.retry_after_ms is not None else None
        if retry_after.isdigit() and seconds is None:
            seconds = float(retry_after)
        return ChatError(f"The homeserver is rate-limiting Hark: {reason}.", seconds if seconds is not None else 5.0)
    if status == 401:
        return ChatError(
            f"The homeserver rejected the access token: {reason}. Create a new one and set it in [surfaces.matrix]."
        )
    if details.errcode and 400 <= status < 500 and status != 408:
        return ChatGone(f"The homeserver refused the request: {reason}.")
    return ChatError(f"The homeserver had an error: {reason}.")


def _unreachable_error(error: Exception) -> ChatError:
    return ChatError(f"The homeserver can't be reached: {str(error) or type(error).__name__}.")
