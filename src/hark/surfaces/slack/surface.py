"""Slack as a chat surface: Socket Mode needs no address of ours, HTTP is a hook of the web server."""

from typing import TYPE_CHECKING

import anyio

from hark.protocol.chat import Address, Author, ChatError, Deliver, Outgoing, PlatformLimits
from hark.surfaces.chat.settings import secret
from hark.surfaces.slack.platform import SlackSettings

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from hark.protocol.hooks import Hook

MANNERS = PlatformLimits(characters=3900, edit_seconds=1.2, knows_keys=False, has_buttons=True, has_reactions=True)


class SlackSurface:
    """A ChatSurface. Slack's library is imported when one is made."""

    def __init__(self, settings: SlackSettings) -> None:
        from hark.surfaces.slack.sending import Sender
        from hark.surfaces.slack.web_api import Web

        self._settings = settings
        self._web = Web(secret(settings.token, settings.token_env), settings.api_base)
        self._sender = Sender(self._web)
        self._app: AsyncApp | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return "slack"

    @property
    def manners(self) -> PlatformLimits:
        """What Slack allows."""
        return MANNERS

    def hook(self) -> "Hook":
        """Return the hook for HTTP mode; while `run` does not run, it asks Slack to come again.

        Raises:
            ChatError: There is no signing secret, so nothing could be told from a forgery.
        """
        from hark.surfaces.slack.http_hook import SlackSignatures, build_hook

        signing_secret = secret(self._settings.signing_secret, self._settings.signing_secret_env)
        if not signing_secret:
            raise ChatError("Slack's HTTP mode needs `signing_secret` in [surfaces.slack].")
        return build_hook(self._settings.path, SlackSignatures(signing_secret), lambda: self._app)

    async def run(self, deliver: Deliver) -> None:
        """Receive until cancelled; Slack gets its ack when `deliver` has returned.

        Raises:
            ChatError: Slack can't be reached, or refuses us.
        """
        from hark.surfaces.slack.app import build_app
        from hark.surfaces.slack.event_delivery import EventDelivery
        from hark.surfaces.slack.files import Files
        from hark.surfaces.slack.incoming import SlackEventReader
        from hark.surfaces.slack.lookups import Lookups
        from hark.surfaces.slack.socket_mode import receive

        app_token = secret(self._settings.app_token, self._settings.app_token_env)
        is_socket = self._settings.mode == "socket"
        if not self._web.client.token or (is_socket and not app_token):
            raise ChatError("[surfaces.slack] needs `token` (xoxb-...), and for Socket Mode `app_token` (xapp-...).")
        async with self._web.open() as session:
            answer = await self._web.put("auth.test")
            us = Author(str(answer["user_id"]), str(answer.get("user", "")))
            lookups = Lookups(self._web, us.id)
            hears_all = self._settings.listen == "all"
            hearing = EventDelivery(
                SlackEventReader(us, Files(self._web, session), lookups, hears_all=hears_all), deliver
            )
            app = build_app(self._web, us, hearing.hear, hearing.press)
            if is_socket:
                await receive(self._web, app, app_token)
            else:
                await self._stand_behind_the_hook(app)

    async def _stand_behind_the_hook(self, app: "AsyncApp") -> None:
        self._app = app
        try:
            await anyio.sleep_forever()
        finally:
            self._app = None

    async def send(self, address: Address, message: Outgoing) -> str:
        """Send a message; return Slack's name of it.

        Raises:
            ChatError: It was not sent.
        """
        return await self._sender.send(address, message)

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Change a message of ours.

        Raises:
            ChatError: It was not changed.
        """
        await self._sender.edit(address, message, new)

    async def typing(self, address: Address) -> None:
        """Show that we are at work, in threads; where Slack has no way to show it, nothing is done."""
        await self._sender.typing(address)

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Put a sign on a person's message, in place of the last one of ours.

        Raises:
            ChatError: It can't be put there.
        """
        await self._sender.react(address, message, sign)
