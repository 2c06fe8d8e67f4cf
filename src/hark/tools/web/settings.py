"""The settings of the web tools: `[web]` in config.toml."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class WebSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the agent may reach, and where it searches.

    `allow` names what may be reached although it is private: hosts, patterns of them, addresses, networks, each with a
    port or without. Without a `search_url`, and with no kind that has one of its own, there is no search.
    """

    allow_private: bool = False
    allow: tuple[str, ...] = ()
    search_url: str = ""
    search_kind: Literal["searxng", "brave", "tavily"] = "searxng"
    search_key_env: str = ""
    timeout_seconds: Annotated[float, Meta(gt=0)] = 30.0
    user_agent: str = "hark-agent (+fetches pages for a person who asked)"
