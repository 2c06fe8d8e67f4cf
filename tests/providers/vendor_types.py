"""The vendors' own types, by name: their libraries take seconds to import, and only some tests need them."""

from functools import cache
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter


@cache
def vendor_type(name: str) -> TypeAdapter[Any]:
    """Return what reads a type, such as "openai.types.chat.ChatCompletion"."""
    module, _, kind = name.rpartition(".")
    return TypeAdapter(vars(import_module(module))[kind])
