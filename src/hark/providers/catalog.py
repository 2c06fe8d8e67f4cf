"""What is known of models by name: how much they take in, and what they cost. What is not known is not invented."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

_FILE = Path(__file__).with_name("catalog.toml")
# A dated name is the same model: claude-haiku-4-5-20251001, gpt-5-nano-2025-08-07.
_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")
# Gateways put the vendor before the name, and one of them spells Anthropic's versions with dots.
_VENDORS = ("anthropic/", "openai/")


class ModelFacts(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[models."NAME"]`: the context window, and prices in USD for a million tokens; None for what is not known."""

    context_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    cached_price: float | None = None

    def over(self, below: "ModelFacts") -> "ModelFacts":
        """Return these facts, with what they leave open from below."""
        return msgspec.convert({**msgspec.to_builtins(below), **msgspec.to_builtins(self)}, ModelFacts)


class Catalog:
    """The facts of the package, and over them those of the settings."""

    def __init__(self, own: Mapping[str, ModelFacts]) -> None:
        self._own = own
        self._known = msgspec.convert(tomllib.loads(_FILE.read_text("utf-8")), dict[str, ModelFacts])

    def facts(self, model: str) -> ModelFacts:
        """Return what is known of a model: all None for one that is not."""
        known = self._known.get(model) or self._known.get(_plain(model)) or ModelFacts()
        own = self._own.get(model)
        return known if own is None else own.over(known)


def _plain(model: str) -> str:
    for vendor in _VENDORS:
        if model.startswith(vendor):
            model = model.removeprefix(vendor)
            if model.startswith("claude-"):
                model = model.replace(".", "-")
            break
    return _DATE.sub("", model)
