"""A session's events as they come, and from where a reader left."""

import asyncio
import time
from collections.abc import AsyncGenerator

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.events import Notice
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.live.feed import Feed
from hark.surfaces.web.live.stream import SseResponse, sse

KEEP_ALIVE_SECONDS = 15.0
RETRY_MILLISECONDS = 1000
RESYNC = "resync"
_RESYNC_WORDS = "Some events are not kept any more: read the transcript, then go on from here."


class EventsQuery(Struct, frozen=True):
    """Where a reader left off, for clients that can't send Last-Event-ID."""

    last_event_id: str = ""


async def stream(web: WebContext, request: Request, query: EventsQuery) -> Response:
    """Stream a session's events; with Last-Event-ID, first those since then. A disconnect doesn't stop the turn."""
    session = web.session(request)
    feed = web.feeds.of(session)
    last = request.headers.get("last-event-id") or query.last_event_id
    await feed.level()
    place: int | None = feed.kept.end
    if last:
        place = feed.kept.place_behind(int(last)) if last.isascii() and last.isdigit() and len(last) < 20 else None
    return SseResponse(event_pieces(session.id, feed, place, last))


async def event_pieces(
    session: str, feed: Feed, place: int | None, last: str, keep_alive_seconds: float = KEEP_ALIVE_SECONDS
) -> AsyncGenerator[bytes]:
    """Yield the events from a place on, which is None if it is not known any more. `last` is the reader's last id."""
    with feed.reading():
        yield b"retry: %d\n\n" % RETRY_MILLISECONDS
        while True:
            pieces = feed.kept.after(place) if place is not None else None
            if pieces is None:
                place = feed.kept.end
                yield _resync(session, feed, last)
            elif pieces:
                place = feed.kept.end
                yield b"".join(pieces)
            elif feed.is_over:
                return
            else:
                try:
                    async with asyncio.timeout(keep_alive_seconds):
                        await feed.news()
                except TimeoutError:
                    yield b": still here\n\n"


def _resync(session: str, feed: Feed, last: str) -> bytes:
    """Return what a reader is told that was away, or behind, for too long: its place is where the feed is now."""
    seq = feed.kept.last or (int(last) if last.isascii() and last.isdigit() and len(last) < 20 else 0)
    notice = Notice(session, feed.turn, seq, time.time(), RESYNC, _RESYNC_WORDS)
    return sse(notice.type, msgspec.json.encode(notice), feed.kept.last)
