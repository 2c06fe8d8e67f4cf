"""Whether the tables `[surfaces.NAME]` can be used: their names, their keys, and the secrets that they need."""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import structs

from hark.surfaces.chat.settings import ChatSettings

if TYPE_CHECKING:
    from hark.surfaces.webhook.settings import HookSettings

STOP_WORDS = "stop_words"
TYPED = ("terminal", "page", "api", "acp")  # surfaces of people that are always there
ELSEWHERE = {"web": "the page and the API are set up in [serve]"}


def surface_errors(surfaces: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the surfaces can't be run as these tables say."""
    from hark.cli.serve.chat_surfaces import MAKERS

    for name, table in surfaces.items():
        where = f"surfaces.{name}"
        if name in ELSEWHERE:
            continue
        if name not in (*MAKERS, *TYPED):
            yield f"{where}: there is no such surface. There are: {', '.join((*MAKERS, *TYPED))}."
        elif not isinstance(table, dict):
            yield f"{where} must be a table: write [{where}]."
        elif name in TYPED:
            yield from _typed_problems(where, cast("dict[str, Any]", table))
        elif name in KINDS:
            yield from (f"{where}: {problem}" for problem in _problems(name, cast("dict[str, Any]", table)))


def surface_warnings(surfaces: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is suspicious."""
    for name, table in surfaces.items():
        if name in ELSEWHERE:
            yield f"surfaces.{name} is not looked at: {ELSEWHERE[name]}."
        elif name == "webhook" and isinstance(table, dict) and not cast("dict[str, Any]", table).get("hooks"):
            yield "surfaces.webhook has no hooks: no program can call. Write [surfaces.webhook.hooks.NAME]."
        elif isinstance(table, dict) and "*" in cast("dict[str, Any]", table).get("allow", ()):
            yield f'surfaces.{name}.allow has "*": everybody who finds it can use this machine through your agent.'


def _typed_problems(where: str, table: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the table of a surface that is no chat."""
    yield from (
        f"{where}.{key} is not a setting: stop_words is the only one there." for key in table if key != STOP_WORDS
    )
    if not isinstance(table.get(STOP_WORDS, True), bool):
        yield f"{where}.{STOP_WORDS} must be true or false."


def _problems(name: str, table: dict[str, Any]) -> Iterator[str]:
    try:
        settings = msgspec.convert(table, KINDS[name](), strict=False)
    except msgspec.ValidationError as error:
        yield f"{error}. See docs/{name}.md."
        return
    unknown = [key for key in table if key not in settings.__struct_fields__]
    yield from (f"{key} is not a setting of it. See docs/{name}.md." for key in unknown)
    values = structs.asdict(settings)
    for secret in _secrets(name, values):
        variable = values.get(f"{secret}_env", "")
        if values[secret] or os.environ.get(variable):
            continue
        told = f"{secret}_env says that {variable} has it, but that is not set" if variable else "neither is there"
        yield f"it needs {secret} or {secret}_env; {told}."
    if name == "matrix" and not values["api_base"]:
        yield "it needs api_base, the address of the homeserver."
    for hook, of_hook in values.get("hooks", {}).items():
        yield from (f"hooks.{hook}: {problem}" for problem in _hook_problems(hook, of_hook))


def _hook_problems(name: str, settings: "HookSettings") -> Iterator[str]:
    """Yield why one program can't call, or be called."""
    from hark.protocol.chat import ChatError
    from hark.surfaces.webhook.settings import secret_of
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


def _secrets(name: str, values: Mapping[str, Any]) -> list[str]:
    """Return the secrets that a surface can't do without; a webhook's belong to its hooks."""
    if name == "webhook":
        return []
    if name != "slack":
        return ["token"]
    return ["token", "app_token" if values["mode"] == "socket" else "signing_secret"]


def _telegram() -> type[ChatSettings]:
    from hark.surfaces.telegram.settings import TelegramSettings

    return TelegramSettings


def _discord() -> type[ChatSettings]:
    from hark.surfaces.discord.settings import DiscordSettings

    return DiscordSettings


def _slack() -> type[ChatSettings]:
    from hark.surfaces.slack.settings import SlackSettings

    return SlackSettings


def _matrix() -> type[ChatSettings]:
    from hark.surfaces.matrix.settings import MatrixSettings

    return MatrixSettings


def _webhook() -> type[ChatSettings]:
    from hark.surfaces.webhook.settings import WebhookSettings

    return WebhookSettings


KINDS: dict[str, Callable[[], type[ChatSettings]]] = {
    "telegram": _telegram,
    "discord": _discord,
    "slack": _slack,
    "matrix": _matrix,
    "webhook": _webhook,
}
