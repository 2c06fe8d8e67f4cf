"""The model servers that Hark knows by name, and detection of the available ones."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from hark.app.settings import SettingsError
from hark.app.settings.types import RouteSettings
from hark.protocol.provider import ProviderError

if TYPE_CHECKING:
    import aiohttp

PROBE_SECONDS = 0.3


class Preset(Struct, frozen=True):
    """A model server that Hark knows by name. `model` is the default model; a local server lists its own."""

    name: str
    title: str
    provider: str
    base_url: str = ""
    key_env: str = ""
    model: str = ""

    @property
    def is_local(self) -> bool:
        """Whether the server runs on this machine."""
        return self.base_url.startswith("http://127.0.0.1:")

    def route(self, model: str = "") -> RouteSettings:
        """Return a route to this server."""
        return RouteSettings(self.name, self.provider, self.base_url, model or self.model, self.key_env)


OPENROUTER = Preset(
    "openrouter", "OpenRouter", "openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter/auto"
)
ANTHROPIC = Preset(
    "anthropic", "Anthropic", "anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-sonnet-5-5"
)
# OpenAI's newest models support tools only through this API.
OPENAI = Preset("openai", "OpenAI", "responses", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-6-sol")
OLLAMA = Preset("ollama", "Ollama", "openai", "http://127.0.0.1:11434/v1")
LLAMA_CPP = Preset("llama.cpp", "llama.cpp", "openai", "http://127.0.0.1:8080/v1")
LM_STUDIO = Preset("lm-studio", "LM Studio", "openai", "http://127.0.0.1:1234/v1")
VLLM = Preset("vllm", "vLLM", "openai", "http://127.0.0.1:8000/v1")
EMBEDDED = Preset("embedded", "the built-in demo model", "local")

KEYED_PRESETS = (OPENROUTER, ANTHROPIC, OPENAI)
LOCAL_SERVERS = (OLLAMA, LLAMA_CPP, LM_STUDIO, VLLM)
PRESETS = {preset.name: preset for preset in (*KEYED_PRESETS, *LOCAL_SERVERS, EMBEDDED)}


async def detect_route(http: "aiohttp.ClientSession", *, servers: Sequence[Preset] = LOCAL_SERVERS) -> RouteSettings:
    """Return a route for an API key in the environment, else for a local server, else for the embedded model.

    Raises:
        SettingsError: None of these is available.
    """
    route = route_from_environment(os.environ)
    if route is not None:
        return route
    for _, found in await find_local_servers(http, servers=servers):
        return found
    return _embedded_route()


def route_from_environment(environ: Mapping[str, str]) -> RouteSettings | None:
    """Return the route for the first API key that is set in `environ`, or None."""
    model = environ.get("HARK_MODEL", "")
    preset = next((preset for preset in KEYED_PRESETS if environ.get(preset.key_env)), None)
    base_url = environ.get("OPENAI_BASE_URL", "")
    if preset is OPENAI and base_url:
        # Another vendor's server under OpenAI's name. All of them support chat completions.
        return RouteSettings(OPENAI.name, "openai", base_url, model or OPENAI.model, OPENAI.key_env)
    return preset.route(model) if preset else None


async def find_local_servers(
    http: "aiohttp.ClientSession", *, servers: Sequence[Preset] = LOCAL_SERVERS
) -> list[tuple[Preset, RouteSettings]]:
    """Return the servers on this machine that respond, each with a route to it."""
    found = await asyncio.gather(*(list_models(http, preset.base_url) for preset in servers))
    wanted = os.environ.get("HARK_MODEL", "")
    return [
        (preset, preset.route(wanted or models[0])) for preset, models in zip(servers, found, strict=True) if models
    ]


async def list_models(http: "aiohttp.ClientSession", base_url: str, seconds: float = PROBE_SECONDS) -> list[str]:
    """Return the models available at `base_url`, or an empty list if no model server responds."""
    import aiohttp

    try:
        async with asyncio.timeout(seconds), http.get(f"{base_url}/models") as response:
            answer = await response.json(content_type=None)
            # Hark's own gateway has the same API and must not be mistaken for a model server.
            return [str(model["id"]) for model in answer["data"] if model.get("owned_by") != "hark"]
    except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return []  # not a model server


def _embedded_route() -> RouteSettings:
    from hark.providers.local.server import find_weights

    try:
        find_weights()
    except ProviderError as error:
        raise SettingsError(
            "No model is set up: the environment has no API key (OPENROUTER_API_KEY, ANTHROPIC_API_KEY, "
            f"OPENAI_API_KEY) and no local server is responding (Ollama, llama.cpp, LM Studio, vLLM). {error}"
        ) from error
    return EMBEDDED.route()
