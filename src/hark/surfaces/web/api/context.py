"""What all endpoints work with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.requests import Request

from hark.protocol.agent import Agent
from hark.protocol.session import Session
from hark.protocol.speech import Audio
from hark.protocol.voice_messages import Ingress
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.guard.access import Access
from hark.surfaces.web.hooks import Hooks
from hark.surfaces.web.live.feeds import Feeds
from hark.surfaces.web.metrics import Metrics

API = "api"
PAGE = "page"
SURFACE_HEADER = "X-Hark-Surface"  # only our page sets it


@dataclass(frozen=True, slots=True)
class WebPlace:
    """The agent, who may come in, the feeds of its sessions, what is counted, and the way in for voice.

    `hooks` are the addresses that belong to chat platforms.
    No `speak`, which returns a text as sound: no spoken replies.
    """

    agent: Agent
    access: Access
    feeds: Feeds
    metrics: Metrics
    ingress: Ingress
    hooks: Hooks = field(default_factory=Hooks)
    speak: Callable[[str], Awaitable[Audio]] | None = None

    def session(self, request: Request) -> Session:
        """Return the session that the address names.

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
