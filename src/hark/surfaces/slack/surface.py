"""Slack as a chat surface. Socket Mode needs no public URL; HTTP mode uses a hook of the web server."""

import anyio
from slack_bolt.async_app import AsyncApp

from hark.protocol.chat import Author, ChatError, ChatSurface, Deliver, PlatformLimits
from hark.protocol.hooks import Hook
from hark.surfaces.chat.settings import PlatformServices, resolve_secret
from hark.surfaces.slack.app import EventDelivery, build_app
from hark.surfaces.slack.files import FileDownloader
from hark.surfaces.slack.http_hook import SignatureVerifier, build_hook
from hark.surfaces.slack.incoming import SlackEventReader, SlackLookups
from hark.surfaces.slack.platform import SlackSettings
from hark.surfaces.slack.sending import SlackSender
from hark.surfaces.slack.socket_mode import receive_events
from hark.surfaces.slack.web_api import SlackWebApi


class SlackSurface(SlackSender):
    """The chat surface for one Slack app: a SlackSender that also receives events."""

    name = "slack"
    limits = PlatformLimits(characters=3900, edit_seconds=1.2, knows_keys=False, has_buttons=True, has_reactions=True)

    def __init__(self, settings: SlackSettings) -> None:
        super().__init__(SlackWebApi(resolve_secret(settings.token, settings.token_env), settings.api_base))
        self._settings = settings
        self._app: AsyncApp | None = None

    def make_hook(self) -> Hook:
        """Return the hook for HTTP mode. It asks Slack to retry while `run` isn't running.

        Raises:
            ChatError: There is no signing secret, so requests can't be verified.
        """
        signing_secret = resolve_secret(self._settings.signing_secret, self._settings.signing_secret_env)
        if not signing_secret:
            raise ChatError("Slack's HTTP mode needs `signing_secret` in [surfaces.slack].")
        return build_hook(self._settings.path, SignatureVerifier(signing_secret), lambda: self._app)

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled. An event is acknowledged after `deliver` has returned.

        Raises:
            ChatError: Slack can't be reached or refused the request.
        """
        app_token = resolve_secret(self._settings.app_token, self._settings.app_token_env)
        is_socket = self._settings.mode == "socket"
        if not self.web.client.token or (is_socket and not app_token):
            raise ChatError("[surfaces.slack] needs `token` (xoxb-...), and for Socket Mode `app_token` (xapp-...).")
        async with self.web.open_session() as session:
            answer = await self.web.post("auth.test")
            bot = Author(str(answer["user_id"]), str(answer.get("user", "")))
            files, lookups = FileDownloader(self.web, session), SlackLookups(self.web, bot.id)
            reader = SlackEventReader(bot, files, lookups, listens_to_all=self._settings.listen == "all")
            app = build_app(self.web, bot, EventDelivery(reader, deliver))
            if is_socket:
                await receive_events(self.web, app, app_token)
                return
            self._app = app
            try:
                await anyio.sleep_forever()
            finally:
                self._app = None


def make_surface(settings: SlackSettings, services: PlatformServices) -> ChatSurface:
    """Return a Slack surface with these settings."""
    surface = SlackSurface(settings)
    if settings.mode == "http":
        services.add_hooks(surface.make_hook())
    return surface
