"""Facts about models by name: context window and prices. Unknown facts are left out, never estimated."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

_FILE = Path(__file__).with_name("catalog.toml")
# A name with a date is the same model: claude-haiku-4-5-20251001, gpt-5-nano-2025-08-07.
_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")
# Gateways prefix the name with the vendor, and OpenRouter writes Anthropic's version numbers with dots.
_VENDORS = ("anthropic/", "openai/")


class ModelFacts(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The table `[models."NAME"]`: context window, and prices in USD per million tokens; None if unknown."""

    context_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None

    def with_defaults(self, defaults: "ModelFacts") -> "ModelFacts":
        """Return these facts, with missing values taken from `defaults`."""
        return msgspec.convert({**msgspec.to_builtins(defaults), **msgspec.to_builtins(self)}, ModelFacts)


class ModelCatalog:
    """The facts that ship with the package, overridden by those in the settings."""

    def __init__(self, configured: Mapping[str, ModelFacts]) -> None:
        self._configured = configured
        self._shipped = msgspec.convert(tomllib.loads(_FILE.read_text("utf-8")), dict[str, ModelFacts])

    def get_facts(self, model: str) -> ModelFacts:
        """Return the facts about a model. An unknown model has only None values."""
        shipped = self._shipped.get(model) or self._shipped.get(_normalize_name(model)) or ModelFacts()
        configured = self._configured.get(model)
        return shipped if configured is None else configured.with_defaults(shipped)


def _normalize_name(model: str) -> str:
    for vendor in _VENDORS:
        if model.startswith(vendor):
            model = model.removeprefix(vendor)
            if model.startswith("claude-"):
                model = model.replace(".", "-")
            break
    return _DATE.sub("", model)
