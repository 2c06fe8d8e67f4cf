"""`[surfaces.NAME]`, and what a platform declares so that it can be set up: its `PLATFORM`."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

from hark.protocol.chat import Author, ChatSurface
from hark.protocol.hooks import Hook

# Each is a folder beside this one: its module `platform` has a PLATFORM, and its module `surface` a `make_surface`.
PLATFORMS = ("telegram", "discord", "slack", "matrix", "webhook")


class ChatSettings(Struct, frozen=True, omit_defaults=True):
    """`allow`: ids of people who may talk, "*" for everybody. `receipts`: how it is told what became of a message.

    `listen`: in groups, to messages that name us, or to all. `stop_words`: whether the words of `[delivery]` stop here.
    """

    token_env: str = ""
    token: str = ""
    api_base: str = ""
    allow: tuple[str, ...] = ()
    receipts: Literal["reactions", "replies", "off"] = "reactions"
    listen: Literal["mentions", "all"] = "mentions"
    per_minute: int = 30
    streams: bool = True
    stop_words: bool = True


S = TypeVar("S", bound=ChatSettings)


def secret(value: str, variable: str) -> str:
    """Return a secret: the value from the settings, otherwise that of the environment variable; "" without either."""
    return value or (os.environ.get(variable, "") if variable else "")


class AddHooks(Protocol):
    """Has hooks of a surface answered by the web server."""

    def __call__(self, *hooks: Hook) -> None:
        """Add them, in place of those from before. Raises ValueError if a path can't be had."""
        ...


@dataclass(frozen=True, slots=True)
class PlatformServices:
    """What a surface may use. `home` is the folder for its own files, `is_stop` tells whether a text stops."""

    home: Path
    is_known: Callable[[Author], bool]
    is_stop: Callable[[str], bool]
    add_hooks: AddHooks


@dataclass(frozen=True, slots=True)
class ChatPlatform(Generic[S]):
    """A platform, without its library: that is imported when a surface is made or run.

    `secrets`: the settings that must have a value, or a variable in NAME_env. `problems`: what else is wrong with the
    settings. `is_gated`: the surface itself admits senders and limits their rate.
    """

    name: str
    settings: type[S]
    secrets: Callable[[S], Sequence[str]] = lambda _: ("token",)
    problems: Callable[[S], Iterable[str]] = lambda _: ()
    is_gated: bool = False

    def read(self, table: Mapping[str, Any]) -> S:
        """Return the settings in a table of config.toml. Raises msgspec.ValidationError if they are wrong."""
        return msgspec.convert(dict(table), self.settings, strict=False)

    def make(self, settings: S, services: PlatformServices) -> ChatSurface:
        """Return its surface.

        Raises:
            ChatError, ValueError: The settings can't be used. The text says why.
        """
        return import_module(f"hark.surfaces.{self.name}.surface").make_surface(settings, services)


def load_platform(name: str) -> ChatPlatform[ChatSettings]:
    """Return one of PLATFORMS."""
    return import_module(f"hark.surfaces.{name}.platform").PLATFORM
