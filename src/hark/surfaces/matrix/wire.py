"""The homeserver behind typed calls: the client library is known here alone, and errors are translated here, once."""

import io
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote

import aiohttp

from hark.protocol.chat import ChatError, ChatGone
from hark.surfaces.chat.download import CHUNK_BYTES, FETCH_SECONDS
from hark.surfaces.matrix.wire_types import EventPage, HomeserverError, RoomEvent, Synced, events_of, understood

if TYPE_CHECKING:
    import nio  # pyright: ignore[reportMissingTypeStubs]

T = TypeVar("T")
Answer = dict[str, Any]  # an answer whose shape the client library has checked

REQUEST_SECONDS = 30
SYNC_SECONDS = 30
TYPES = ["m.room.message", "m.room.redaction", "m.reaction", "m.room.encrypted", "m.room.member"]


def _what(**more: Any) -> dict[str, Any]:
    """Return what we want to know of rooms: what happens, and nothing of their state, which may be much."""
    none: dict[str, Any] = {"types": []}
    room = {"timeline": {"limit": 50, "types": TYPES}, "state": none, "ephemeral": none, "account_data": none}
    return {"presence": none, "account_data": none, "room": room, **more}


class Wire:
    """One pool of connections, for one account. Every call raises ChatError and is safe to cancel."""

    def __init__(self, homeserver: str, token: str) -> None:
        import nio  # pyright: ignore[reportMissingTypeStubs]

        # The library would write whole messages into the log.
        logging.getLogger("nio").setLevel(logging.WARNING)
        # The library would wait and try again by itself, and say nothing: whoever asked decides that here.
        config = nio.AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0, request_timeout=REQUEST_SECONDS)
        self._client = nio.AsyncClient(homeserver.rstrip("/"), config=config)
        self._client.access_token = token
        self._headers = {"Authorization": f"Bearer {token}"}

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    # In.

    async def who_am_i(self) -> tuple[str, str]:
        """Return our id, and the name that people see."""
        me = str((await self._ask(self._client.whoami(), Answer))["user_id"])
        try:
            profile = await self._ask(self._client.get_displayname(me), Answer)
        except ChatGone:
            profile = {}
        return me, str(profile.get("displayname") or me[1:].partition(":")[0])

    async def sync(self, since: str) -> Synced:
        """Wait for news since a token; without one, return at once with the token of now."""
        if since:
            return await self._ask(self._client.sync(SYNC_SECONDS * 1000, _what(), since), Synced)
        # Homeservers answer the same question alike for some minutes. Where we begin must be now: ask as nobody has.
        unasked = _what(presence={"types": [], "not_senders": [f"@{uuid.uuid4().hex}:x"]})
        return await self._ask(self._client.sync(1, unasked), Synced)

    async def learn_members(self, room: str) -> None:
        """Ask who is in a room; from then on the news tell who comes and goes."""
        await self._ask(self._client.joined_members(room), Answer)

    async def page(self, room: str, start: str, end: str) -> EventPage:
        """Return a page of a room's past, from `start` back, no further than `end`."""
        what = {"types": TYPES}
        return await self._ask(
            self._client.room_messages(room, start, end or None, limit=100, message_filter=what), EventPage
        )

    async def event(self, room: str, event: str) -> RoomEvent:
        """Return one event."""
        return await self._ask(self._client.room_get_event(room, event), RoomEvent)

    async def our_reactions(self, room: str, event: str) -> list[str]:
        """Return our own reactions to an event, of its newest."""
        path = f"/_matrix/client/v1/rooms/{quote(room)}/relations/{quote(event)}/m.annotation/m.reaction?limit=100"
        try:
            response = await self._client.send("GET", path, headers=self._headers)
            body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(error) from error
        if response.status != 200:
            raise refusal(response.status, body, response.headers.get("Retry-After", ""))
        found = events_of((understood(body, EventPage) or EventPage()).chunk)
        return [one.event_id for one in found if one.sender == self._client.user_id]

    async def content(self, server: str, media: str) -> AsyncGenerator[bytes]:
        """Yield the content of a file. Raises what aiohttp does, too."""
        path = f"/_matrix/client/v1/media/download/{quote(server)}/{quote(media)}"
        response = await self._client.send("GET", path, headers=self._headers, timeout=FETCH_SECONDS)
        try:
            if response.status != 200:
                raise refusal(response.status, await response.read(), response.headers.get("Retry-After", ""))
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                yield chunk
        finally:
            response.close()

    def invites(self) -> dict[str, str]:
        """Return the rooms that we are asked into, with who asks."""
        return {room: invited.inviter or "" for room, invited in self._client.invited_rooms.items()}

    def forget_invite(self, room: str) -> None:
        """Think no more of an invite."""
        self._client.invited_rooms.pop(room, None)

    def member_count(self, room: str) -> int:
        """Return how many are in a room, we among them."""
        known = self._client.rooms.get(room)
        return known.joined_count if known is not None else 0

    def name_of(self, room: str, person: str) -> str:
        """Return how somebody is called in a room; two of the same name are told apart."""
        known = self._client.rooms.get(room)
        return (known.user_name(person) if known is not None else None) or person

    # Out.

    async def join(self, room: str) -> None:
        """Enter a room."""
        await self._ask(self._client.join(room), Answer)

    async def put(self, room: str, kind: str, content: dict[str, Any], transaction: str) -> str:
        """Send an event; the same transaction is taken once, and has the same id again."""
        return str((await self._ask(self._client.room_send(room, kind, content, transaction), Answer))["event_id"])

    async def redact(self, room: str, event: str) -> None:
        """Take back an event of ours."""
        await self._ask(self._client.room_redact(room, event), Answer)

    async def typing(self, room: str, seconds: float) -> None:
        """Show that we write."""
        await self._ask(self._client.room_typing(room, True, int(seconds * 1000)), Answer)

    async def upload(self, data: bytes, media_type: str, name: str) -> str:
        """Put a file on the homeserver; return its address."""

        async def upload() -> "nio.Response":
            answer, _ = await self._client.upload(io.BytesIO(data), media_type, name, filesize=len(data))
            return answer

        return str((await self._ask(upload(), Answer))["content_uri"])

    async def _ask(self, call: "Awaitable[nio.Response]", kind: type[T]) -> T:
        import nio  # pyright: ignore[reportMissingTypeStubs]

        try:
            response = await call
            transport = cast("aiohttp.ClientResponse", response.transport_response)
            body = await transport.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(error) from error
        except (nio.LocalProtocolError, ValueError) as error:
            raise ChatError(f"the homeserver's answer is of no use: {type(error).__name__}") from error
        if transport.status != 200:
            raise refusal(transport.status, body, transport.headers.get("Retry-After", ""))
        said = understood(body, kind)
        if said is None or isinstance(response, nio.ErrorResponse):
            raise ChatError("the homeserver answered with something that is not Matrix; is api_base right?")
        return said


def refusal(status: int, body: bytes, retry_after: str) -> ChatError:
    """Return what a refusal means to us."""
    said = understood(body, HomeserverError) or HomeserverError()
    why = f"{said.errcode} {said.error}".strip()[:300] or f"status {status}"
    if status == 429:
        seconds = said.retry_after_ms / 1000 if said.retry_after_ms is not None else None
        if retry_after.isdigit() and seconds is None:
            seconds = float(retry_after)
        return ChatError(f"the homeserver asks us to wait: {why}", seconds if seconds is not None else 5.0)
    if status == 401:
        return ChatError(f"the homeserver refuses our access token: {why}. Make a new one and put it in the settings.")
    if said.errcode and 400 <= status < 500 and status != 408:
        return ChatGone(f"the homeserver refuses: {why}")
    return ChatError(f"the homeserver fails: {why}")


def _unreachable(error: Exception) -> ChatError:
    return ChatError(f"the homeserver can't be reached: {str(error) or type(error).__name__}")
