"""The settings of `[surfaces.slack]`."""

from typing import Literal

from hark.surfaces.chat.settings import ChatPlatform, ChatSettings


class SlackSettings(ChatSettings, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Settings of the Slack surface.

    `token` is the bot's token (xoxb-). `mode`: "socket" needs `app_token` (xapp-), "http" needs `signing_secret`.
    `path` is the HTTP path to which Slack sends its requests in HTTP mode.
    """

    mode: Literal["socket", "http"] = "socket"
    token_env: str = "SLACK_BOT_TOKEN"  # noqa: S105
    app_token_env: str = "SLACK_APP_TOKEN"  # noqa: S105
    app_token: str = ""
    signing_secret_env: str = "SLACK_SIGNING_SECRET"  # noqa: S105
    signing_secret: str = ""
    path: str = "/slack/events"


def _required_secrets(settings: SlackSettings) -> tuple[str, str]:
    return "token", "app_token" if settings.mode == "socket" else "signing_secret"


PLATFORM = ChatPlatform("slack", SlackSettings, _required_secrets)
