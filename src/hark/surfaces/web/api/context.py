"""The services that all endpoints share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from starlette.requests import Request

from hark.protocol.agent import Agent
from hark.protocol.session import Session
from hark.protocol.speech import Audio
from hark.protocol.voice_messages import VoiceInbox
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.web.guard.access import Access
from hark.surfaces.web.hooks import Hooks
from hark.surfaces.web.live.feed import Feeds
from hark.surfaces.web.metrics import Metrics

MAX_CONCURRENT_SPEECH = 4
API = "api"
PAGE = "page"
SURFACE_HEADER = "X-Hark-Surface"  # our page sets it to "page"; everything else is the API


@dataclass(frozen=True, slots=True)
class WebContext:
    """The services that the endpoints share: the agent, access control, event feeds, counters and the voice inbox.

    `hooks` are the paths that belong to chat platforms. `speak` converts text to speech; None turns spoken replies
    off. `speech_limiter` limits the number of concurrent speech requests.
    """

    agent: Agent
    access: Access
    feeds: Feeds
    metrics: Metrics
    voice_inbox: VoiceInbox
    hooks: Hooks = field(default_factory=Hooks)
    speak: Callable[[str], Awaitable[Audio]] | None = None
    version: str = ""
    speech_limiter: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(MAX_CONCURRENT_SPEECH))

    def session(self, request: Request) -> Session:
        """Return the session that the request's path names.

        Raises:
            ApiError: The session name is invalid.
        """
        is_page = request.headers.get(SURFACE_HEADER) == PAGE
        return self.session_named(request.path_params["session"], PAGE if is_page else API)

    def session_named(self, name: str, surface: str = API) -> Session:
        """Return the session named `name`.

        Raises:
            ApiError: The session name is invalid.
        """
        try:
            return self.agent.session(name, surface)
        except ValueError as error:
            raise ApiError(400, "bad_name", str(error)) from error
