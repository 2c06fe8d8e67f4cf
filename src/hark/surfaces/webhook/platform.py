"""`[surfaces.webhook]`: which programs may call us, and where what we say is sent."""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from hark.protocol.chat import ChatError
from hark.surfaces.chat.settings import ChatPlatform, ChatSettings, secret

_NAME = re.compile(r"[A-Za-z0-9._-]{1,40}")


class HookSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`[surfaces.webhook.hooks.NAME]`: one program, whose requests come to /hooks/NAME.

    `signature`: how its requests prove who they are from. `url`: where what we say is sent; without it, nothing is.
    With a `template` the body is a payload of its own kind, and `text` is made of it; `chat`, `author` and `id` may
    be templates, too. `id_header` names the header with the delivery's id. `events`: of GitHub's, only these.
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
    """`per_minute` counts each hook's messages; `max_mb` bounds a request. Replies are sent whole, unless `streams`."""

    receipts: Literal["reactions", "replies", "off"] = "off"
    per_minute: int = 60
    streams: bool = False
    max_mb: float = 10.0
    hooks: dict[str, HookSettings] = field(default_factory=dict[str, HookSettings])


def secret_of(name: str, settings: HookSettings) -> bytes:
    """Return a hook's secret.

    Raises:
        ChatError: It has none, or can't have its name.
    """
    if not _NAME.fullmatch(name):
        raise ChatError(f"{name!r} can't name a hook: use 1 to 40 letters, digits and . _ -")
    found = secret(settings.secret, settings.secret_env)
    if not found:
        why = f"{settings.secret_env} is empty" if settings.secret_env else "it has no secret_env"
        raise ChatError(
            f"The hook {name} has no secret ({why}), so nothing could be told from a forgery. "
            "Make one: openssl rand -hex 32."
        )
    return found.encode()


def _problems(settings: WebhookSettings) -> Iterator[str]:
    for name, hook in settings.hooks.items():
        yield from (f"hooks.{name}: {problem}" for problem in _hook_problems(name, hook))


def _hook_problems(name: str, settings: HookSettings) -> Iterator[str]:
    """Yield why one program can't call, or be called."""
    from hark.surfaces.webhook.template import Template

    try:
        secret_of(name, settings)
    except ChatError as error:
        yield str(error)
    for text in (settings.template, settings.chat, settings.author, settings.id):
        try:
            Template(text)
        except ValueError as error:
            yield str(error)
    if settings.url and not settings.url.startswith(("http://", "https://")):
        yield f"url is {settings.url!r}; it must begin with http:// or https://."


# Whoever knows a hook's secret may talk, and is told how often: see `Webhook`.
PLATFORM = ChatPlatform("webhook", WebhookSettings, secrets=lambda _: (), problems=_problems, is_gated=True)
