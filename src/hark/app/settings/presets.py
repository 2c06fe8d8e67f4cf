"""The model servers that Hark knows by name, and which of them this machine offers when the settings name none."""

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
    """A server. `model` is what to use when nothing else is said; a local server is asked for its own."""

    name: str
    title: str
    provider: str
    base_url: str = ""
    key_env: str = ""
    model: str = ""

    @property
    def is_local(self) -> bool:
        """Whether it is a server on this machine, that has to be running."""
        return self.base_url.startswith("http://127.0.0.1:")

    def route(self, model: str = "") -> RouteSettings:
        """Return a route to it."""
        return RouteSettings(self.name, self.provider, self.base_url, model or self.model, self.key_env)


OPENROUTER = Preset(
    "openrouter", "OpenRouter", "openai", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openrouter/auto"
)
ANTHROPIC = Preset(
    "anthropic", "Anthropic", "anthropic", "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-sonnet-5-5"
)
# Its newest models take tools through this API alone.
OPENAI = Preset("openai", "OpenAI", "responses", "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-6-sol")
OLLAMA = Preset("ollama", "Ollama", "openai", "http://127.0.0.1:11434/v1")
LLAMA_CPP = Preset("llama.cpp", "llama.cpp", "openai", "http://127.0.0.1:8080/v1")
LM_STUDIO = Preset("lm-studio", "LM Studio", "openai", "http://127.0.0.1:1234/v1")
VLLM = Preset("vllm", "vLLM", "openai", "http://127.0.0.1:8000/v1")
EMBEDDED = Preset("embedded", "the embedded demonstration model", "local")

WITH_KEYS = (OPENROUTER, ANTHROPIC, OPENAI)
LOCAL_SERVERS = (OLLAMA, LLAMA_CPP, LM_STUDIO, VLLM)
PRESETS = {preset.name: preset for preset in (*WITH_KEYS, *LOCAL_SERVERS, EMBEDDED)}


async def detect(http: "aiohttp.ClientSession", *, servers: Sequence[Preset] = LOCAL_SERVERS) -> RouteSettings:
    """Return the route to use: by a key in the environment, a local server that answers, or the embedded model.

    Raises:
        SettingsError: There is none of these.
    """
    route = from_environment(os.environ)
    if route is not None:
        return route
    for _, found in await local_servers(http, servers=servers):
        return found
    return _embedded()


def from_environment(environ: Mapping[str, str]) -> RouteSettings | None:
    """Return the route of the first key that is set."""
    model = environ.get("HARK_MODEL", "")
    preset = next((preset for preset in WITH_KEYS if environ.get(preset.key_env)), None)
    base_url = environ.get("OPENAI_BASE_URL", "")
    if preset is OPENAI and base_url:
        # Somebody else's server under OpenAI's name: chat completions is what they all speak.
        return RouteSettings(OPENAI.name, "openai", base_url, model or OPENAI.model, OPENAI.key_env)
    return preset.route(model) if preset else None


async def local_servers(
    http: "aiohttp.ClientSession", *, servers: Sequence[Preset] = LOCAL_SERVERS
) -> list[tuple[Preset, RouteSettings]]:
    """Return the servers on this machine that answer, each with a route to it."""
    found = await asyncio.gather(*(models_of(http, preset.base_url) for preset in servers))
    wanted = os.environ.get("HARK_MODEL", "")
    return [
        (preset, preset.route(wanted or models[0])) for preset, models in zip(servers, found, strict=True) if models
    ]


async def models_of(http: "aiohttp.ClientSession", base_url: str, seconds: float = PROBE_SECONDS) -> list[str]:
    """Return the models of the server at an address; none when no model server answers there."""
    import aiohttp

    try:
        async with asyncio.timeout(seconds), http.get(f"{base_url}/models") as response:
            answer = await response.json(content_type=None)
            # Hark's own gateway speaks the same protocol: it must not be taken for a model.
            return [str(model["id"]) for model in answer["data"] if model.get("owned_by") != "hark"]
    except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return []  # whatever is there, it is no model server


def _embedded() -> RouteSettings:
    from hark.providers.local.server import find_weights

    try:
        find_weights()
    except ProviderError as error:
        raise SettingsError(
            "No model is set up: no key is in the environment (OPENROUTER_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_KEY) "
            f"and no local server answers (Ollama, llama.cpp, LM Studio, vLLM). {error}"
        ) from error
    return EMBEDDED.route()
