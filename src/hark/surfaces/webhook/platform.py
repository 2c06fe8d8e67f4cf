"""The settings of `[surfaces.webhook]`: the programs that may send requests, and the URLs of their receivers."""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from hark.protocol.chat import ChatError
from hark.surfaces.chat.settings import ChatPlatform, ChatSettings, resolve_secret

_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")


class HookSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Settings of `[surfaces.webhook.hooks.NAME]`: one program, which sends its requests to /hooks/NAME.

    `signature`: how its requests are authenticated. `url`: where replies are sent; without it, no replies are sent.
    With a `template`, the body is a foreign payload and the text is built from it; `chat`, `author` and `id` can be
    templates too. `id_header` names the header with the delivery's id. `events`: the GitHub events to accept.
    """

    secret_env: str = ""
    secret: str = ""
    signature: Literal["hark", "github", "bearer"] = "hark"
    url: str = ""
    template: str = ""
    chat: str = ""
    author: str = ""
    id: str = ""
    id_header: str = ""
    events: tuple[str, ...] = ()


class WebhookSettings(ChatSettings, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Webhook settings. `per_minute` and `max_mb` limit the messages. `streams`: also send partial replies."""

    receipts: Literal["reactions", "replies", "off"] = "off"
    per_minute: int = 60
    streams: bool = False
    max_mb: float = 10.0
    hooks: dict[str, HookSettings] = field(default_factory=dict[str, HookSettings])


def hook_secret(name: str, settings: HookSettings) -> bytes:
    """Return a hook's secret.

    Raises:
        ChatError: The hook has no secret, or its name is invalid.
    """
    if not _NAME.fullmatch(name):
        raise ChatError(f"{name!r} is not a valid hook name. Use 1 to 40 letters, digits and . _ -")
    value = resolve_secret(settings.secret, settings.secret_env)
    if not value:
        reason = f"{settings.secret_env} is empty" if settings.secret_env else "it has no secret_env"
        raise ChatError(
            f"The hook {name} has no secret ({reason}), so its requests can't be verified. "
            "Create one with: openssl rand -hex 32."
        )
    return value.encode()


def _find_problems(settings: WebhookSettings) -> Iterator[str]:
    for name, hook in settings.hooks.items():
        yield from (f"hooks.{name}: {problem}" for problem in _find_hook_problems(name, hook))


def _find_hook_problems(name: str, settings: HookSettings) -> Iterator[str]:
    """Yield the errors in the settings of one hook."""
    from hark.surfaces.webhook.template import Template

    try:
        hook_secret(name, settings)
    except ChatError as error:
        yield str(error)
    for text in (settings.template, settings.chat, settings.author, settings.id):
        try:
            Template(text)
        except ValueError as error:
            yield str(error)
    if settings.url and not settings.url.startswith(("http://", "https://")):
        yield f"url is {settings.url!r}; it must begin with http:// or https://."


# Every program that knows a hook's secret may write. `WebhookSurface` applies the rate limit.
PLATFORM = ChatPlatform(
    "webhook", WebhookSettings, required_secrets=lambda _: (), find_problems=_find_problems, checks_senders=True
)
