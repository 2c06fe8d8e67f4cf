"""The services that all endpoints share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from starlette.requests import Request

from hark.protocol.gateway import ApiSession, Gateway
from hark.protocol.speech import Audio
from hark.protocol.voice_messages import Ingress
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.guard.access import Access
from hark.surfaces.web.hooks import Hooks
from hark.surfaces.web.live.feed import Feeds
from hark.surfaces.web.metrics import Metrics

SPOKEN_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class WebContext:
    """The agent, access control, the event feeds of its sessions, counters, and the inbox for voice messages.

    `is_stop` returns whether a text is a stop word. `hooks` are the paths that belong to chat platforms. `speak`
    converts a text to speech; None turns spoken replies off. `speakers` limits how many texts are spoken at once.
    """

    gateway: Gateway
    access: Access
    feeds: Feeds
    metrics: Metrics
    ingress: Ingress
    is_stop: Callable[[str], bool]
    hooks: Hooks = field(default_factory=Hooks)
    speak: Callable[[str], Awaitable[Audio]] | None = None
    version: str = ""
    speakers: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(SPOKEN_AT_ONCE))

    def session(self, request: Request) -> ApiSession:
        """Return the session that the path names.

        Raises:
            ApiError: A session can't have that name.
        """
        return self.named(request.path_params["session"])

    def named(self, name: str) -> ApiSession:
        """Return the session of that name.

        Raises:
            ApiError: A session can't have it.
        """
        try:
            return self.gateway.session(name)
        except ValueError as error:
            raise ApiError(400, "bad_name", str(error)) from error
