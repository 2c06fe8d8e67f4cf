"""Slack as a chat surface: Socket Mode needs no address of ours, HTTP is a hook of the web server."""

import anyio
from slack_bolt.async_app import AsyncApp

from hark.protocol.chat import Author, ChatError, ChatSurface, Deliver, PlatformLimits
from hark.protocol.hooks import Hook
from hark.surfaces.chat.settings import PlatformServices, secret
from hark.surfaces.slack.app import EventDelivery, build_app
from hark.surfaces.slack.files import Files
from hark.surfaces.slack.http_hook import SlackSignatures, build_hook
from hark.surfaces.slack.incoming import Lookups, SlackEventReader
from hark.surfaces.slack.platform import SlackSettings
from hark.surfaces.slack.sending import Sender
from hark.surfaces.slack.socket_mode import receive
from hark.surfaces.slack.web_api import Web


class SlackSurface(Sender):
    """A ChatSurface: a sender that receives, too."""

    name = "slack"
    limits = PlatformLimits(characters=3900, edit_seconds=1.2, knows_keys=False, has_buttons=True, has_reactions=True)

    def __init__(self, settings: SlackSettings) -> None:
        super().__init__(Web(secret(settings.token, settings.token_env), settings.api_base))
        self._settings = settings
        self._app: AsyncApp | None = None

    def hook(self) -> Hook:
        """Return the hook for HTTP mode; while `run` does not run, it asks Slack to come again.

        Raises:
            ChatError: There is no signing secret, so nothing could be told from a forgery.
        """
        signing_secret = secret(self._settings.signing_secret, self._settings.signing_secret_env)
        if not signing_secret:
            raise ChatError("Slack's HTTP mode needs `signing_secret` in [surfaces.slack].")
        return build_hook(self._settings.path, SlackSignatures(signing_secret), lambda: self._app)

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled; Slack gets its ack when `deliver` has returned.

        Raises:
            ChatError: Slack can't be reached, or refuses us.
        """
        app_token = secret(self._settings.app_token, self._settings.app_token_env)
        is_socket = self._settings.mode == "socket"
        if not self.web.client.token or (is_socket and not app_token):
            raise ChatError("[surfaces.slack] needs `token` (xoxb-...), and for Socket Mode `app_token` (xapp-...).")
        async with self.web.open() as session:
            answer = await self.web.change("auth.test")
            us = Author(str(answer["user_id"]), str(answer.get("user", "")))
            files, lookups = Files(self.web, session), Lookups(self.web, us.id)
            reader = SlackEventReader(us, files, lookups, hears_all=self._settings.listen == "all")
            app = build_app(self.web, us, EventDelivery(reader, deliver))
            if is_socket:
                await receive(self.web, app, app_token)
                return
            self._app = app
            try:
                await anyio.sleep_forever()
            finally:
                self._app = None


def make_surface(settings: SlackSettings, services: PlatformServices) -> ChatSurface:
    """Return the surface that the settings describe."""
    surface = SlackSurface(settings)
    if settings.mode == "http":
        services.add_hooks(surface.hook())
    return surface
