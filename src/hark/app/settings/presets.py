"""The model servers that Hark knows by name: where they are, what they speak, and which key they take."""

from msgspec import Struct

from hark.app.settings.types import RouteSettings


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
