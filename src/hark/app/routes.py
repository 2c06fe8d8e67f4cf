"""From settings and environment to routes: which model answers."""

import asyncio
import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hark.app.settings import RouteSettings, SettingsError
from hark.engine.workbench import Route

if TYPE_CHECKING:
    import aiohttp

PROBE_SECONDS = 0.3
LOCAL_SERVERS = (("ollama", 11434), ("llama.cpp", 8080), ("lm-studio", 1234), ("vllm", 8000))
NO_MODEL = (
    "No model is set up. Set OPENROUTER_API_KEY or OPENAI_API_KEY, start a local server (Ollama, llama.cpp, "
    "LM Studio, vLLM), or write a [[routes]] table into config.toml."
)


async def detect(http: "aiohttp.ClientSession") -> RouteSettings:
    """Return the route that this machine offers when none is configured.

    Raises:
        SettingsError: There is none.
    """
    model = os.environ.get("HARK_MODEL", "")
    if os.environ.get("OPENROUTER_API_KEY"):
        base_url = "https://openrouter.ai/api/v1"
        return RouteSettings("openrouter", "openai", base_url, model or "openrouter/auto", "OPENROUTER_API_KEY")
    if os.environ.get("OPENAI_API_KEY"):
        base_url = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        return RouteSettings("openai", "openai", base_url, model or "gpt-5-mini", "OPENAI_API_KEY")
    found = await asyncio.gather(*(_probe(http, name, port, model) for name, port in LOCAL_SERVERS))
    for route in found:
        if route is not None:
            return route
    raise SettingsError(NO_MODEL)


async def _probe(http: "aiohttp.ClientSession", name: str, port: int, model: str) -> RouteSettings | None:
    """Return a route to a local server that answers, with its first model."""
    import aiohttp

    base_url = f"http://127.0.0.1:{port}/v1"
    try:
        async with asyncio.timeout(PROBE_SECONDS), http.get(f"{base_url}/models") as response:
            models = await response.json(content_type=None)
            first = str(models["data"][0]["id"])
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError, IndexError, TypeError):
        return None  # whatever is there, it is no model server
    return RouteSettings(name, "openai", base_url, model or first)


def make_route(route: RouteSettings, http: "aiohttp.ClientSession") -> Route:
    """Return a route, ready to use.

    Raises:
        SettingsError: It can't work.
    """
    from hark.providers.endpoint import Endpoint
    from hark.providers.openai_chat import OpenAIChat

    where = f"Route {route.name!r}"
    if route.provider != "openai":
        raise SettingsError(f"{where}: provider {route.provider!r} is not known; it must be openai.")
    if urlsplit(route.base_url).scheme not in ("http", "https"):
        raise SettingsError(f"{where}: base_url {route.base_url!r} is not an http(s) address.")
    if not route.model:
        raise SettingsError(f"{where}: model is missing.")
    endpoint = Endpoint(route.base_url, route.model, _key(route), route.stream)
    return Route(route.name, OpenAIChat(http, endpoint), route.input_price, route.output_price)


def _key(route: RouteSettings) -> str:
    if route.api_key or not route.api_key_env:
        return route.api_key
    key = os.environ.get(route.api_key_env)
    if not key:
        name = route.api_key_env
        raise SettingsError(f"Route {route.name!r}: the environment has no {name}. Set it, or change api_key_env.")
    return key
