"""A session's events as they come, and from where a reader left."""

import asyncio
import time
from collections.abc import AsyncGenerator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hark.protocol.events import Notice
from hark.surfaces.web.api.context import WebPlace
from hark.surfaces.web.live.feed import Feed
from hark.surfaces.web.live.stream import SseResponse, sse

KEEP_ALIVE_SECONDS = 15.0
RETRY_MILLISECONDS = 1000
RESYNC = "resync"
_RESYNC_WORDS = "Some events are not kept any more: read the transcript, then go on from here."


class Events:
    """Server-sent events. A reader that leaves is forgotten; what runs goes on."""

    def __init__(self, place: WebPlace, keep_alive_seconds: float = KEEP_ALIVE_SECONDS) -> None:
        self._place = place
        self._keep_alive_seconds = keep_alive_seconds

    async def stream(self, request: Request) -> Response:
        """Send the events from now on; with Last-Event-ID, first those that came since then."""
        session = self._place.session(request)
        feed = self._place.feeds.of(session)
        last = request.headers.get("last-event-id") or request.query_params.get("last_event_id", "")
        await feed.level()
        place: int | None = feed.kept.end
        if last:
            place = feed.kept.place_behind(int(last)) if last.isascii() and last.isdigit() and len(last) < 20 else None
        return SseResponse(self.pieces(session.id, feed, place, last))

    async def pieces(self, session: str, feed: Feed, place: int | None, last: str) -> AsyncGenerator[bytes]:
        """Yield what is sent from a place on, None when that is not known any more; `last` is what the reader had."""
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
                        async with asyncio.timeout(self._keep_alive_seconds):
                            await feed.news()
                    except TimeoutError:
                        yield b": still here\n\n"


def _resync(session: str, feed: Feed, last: str) -> bytes:
    """Return what a reader is told that was away, or behind, for too long: its place is where the feed is now."""
    seq = feed.kept.last or (int(last) if last.isascii() and last.isdigit() and len(last) < 20 else 0)
    notice = Notice(session, feed.turn, seq, time.time(), RESYNC, _RESYNC_WORDS)
    return sse(notice.type, msgspec.json.encode(notice), feed.kept.last)
