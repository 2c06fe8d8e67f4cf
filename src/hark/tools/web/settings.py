"""The settings for the web tools: `[web]` in config.toml."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class WebSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The hosts that the agent may reach, and the search service.

    `allow` lists private targets that may be reached: hosts, host patterns, IP addresses and networks, with or
    without a port. If `search_url` is empty, the default URL for `search_kind` is used. Without a default URL, there
    is no search tool.
    """

    allow_private: bool = False
    allow: tuple[str, ...] = ()
    search_url: str = ""
    search_kind: Literal["searxng", "brave", "tavily"] = "searxng"
    search_key_env: str = ""
    timeout_seconds: Annotated[float, Meta(gt=0)] = 30.0
    user_agent: str = "hark-agent (+fetches pages on behalf of a user)"
