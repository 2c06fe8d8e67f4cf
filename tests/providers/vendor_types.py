"""The vendors' SDK types by name, imported lazily because the SDKs take seconds to import."""

from functools import cache
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter


@cache
def load_vendor_type(name: str) -> TypeAdapter[Any]:
    """Return an adapter that validates values of a type, such as "openai.types.chat.ChatCompletion"."""
    module, _, kind = name.rpartition(".")
    return TypeAdapter(vars(import_module(module))[kind])
