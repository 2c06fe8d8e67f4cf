"""`[surfaces.NAME]`: what every chat surface may be told."""

from typing import Literal

from msgspec import Struct


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
