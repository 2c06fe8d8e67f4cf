"""The services that all endpoints share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from starlette.requests import Request

from hark.protocol.agent import Agent
from hark.protocol.session import Session
from hark.protocol.speech import Audio
from hark.protocol.voice_messages import Ingress
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.guard.access import Access
from hark.surfaces.web.hooks import Hooks
from hark.surfaces.web.live.feed import Feeds
from hark.surfaces.web.metrics import Metrics

SPOKEN_AT_ONCE = 4
API = "api"
PAGE = "page"
SURFACE_HEADER = "X-Hark-Surface"  # our page sets it to "page"; everything else is the API


@dataclass(frozen=True, slots=True)
class WebContext:
    """The agent, access control, the event feeds of its sessions, counters, and the inbox for voice messages.

    `hooks` are the paths that belong to chat platforms. `speak`
    converts a text to speech; None turns spoken replies off. `speakers` limits how many texts are spoken at once.
    """

    agent: Agent
    access: Access
    feeds: Feeds
    metrics: Metrics
    ingress: Ingress
    hooks: Hooks = field(default_factory=Hooks)
    speak: Callable[[str], Awaitable[Audio]] | None = None
    version: str = ""
    speakers: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(SPOKEN_AT_ONCE))

    def session(self, request: Request) -> Session:
        """Return the session that the path names.

        Raises:
            ApiError: A session can't have that name.
        """
        is_page = request.headers.get(SURFACE_HEADER) == PAGE
        return self.named(request.path_params["session"], PAGE if is_page else API)

    def named(self, name: str, surface: str = API) -> Session:
        """Return the session of that name.

        Raises:
            ApiError: A session can't have it.
        """
        try:
            return self.agent.session(name, surface)
        except ValueError as error:
            raise ApiError(400, "bad_name", str(error)) from error
