"""What all endpoints work with."""

from dataclasses import dataclass

from starlette.requests import Request

from hark.protocol.gateway import ApiSession, Gateway
from hark.protocol.speech import Transcriber
from hark.surfaces.web.access import Access
from hark.surfaces.web.errors import ApiError
from hark.surfaces.web.feed import Feeds
from hark.surfaces.web.metrics import Metrics
from hark.surfaces.web.transcriptions import Transcriptions


@dataclass(frozen=True, slots=True)
class WebPlace:
    """The agent, who may come in, the feeds of its sessions, and what is counted. No `transcriber`: no voice."""

    gateway: Gateway
    access: Access
    feeds: Feeds
    metrics: Metrics
    transcriptions: Transcriptions
    transcriber: Transcriber | None = None

    def session(self, request: Request) -> ApiSession:
        """Return the session that the address names.

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
