"""Settings without their secrets, fit to be shown."""

import os
import re
from collections.abc import Iterator
from typing import Any, cast

SET = "(set)"
_NAMES = re.compile(r"key|token|secret|password|passwd|credential|authorization|cookie", re.IGNORECASE)
_WHOLLY_SECRET = ("env", "headers")
_IN_ADDRESS = re.compile(r"(?<=//)[^/@\s]*@")


def without_secrets(value: Any, *, is_secret: bool = False) -> Any:
    """Return the value with every secret replaced by a word that says it is there.

    A name that ends with `_env` tells where a secret is, and is none.
    """
    match value:
        case dict():
            table = cast("dict[str, Any]", value)
            return {name: without_secrets(item, is_secret=is_secret or _hides(name)) for name, item in table.items()}
        case list() | tuple():
            return [without_secrets(item, is_secret=is_secret) for item in cast("list[Any]", value)]
        case str() if is_secret and value:
            return SET
        case str():
            return _IN_ADDRESS.sub(f"{SET}@", value)
        case _:
            return value


def known_secrets(value: Any, *, is_secret: bool = False) -> Iterator[str]:
    """Yield every secret that settings have or name, so that it can be taken out of what leaves this machine."""
    match value:
        case dict():
            for name, item in cast("dict[str, Any]", value).items():
                if name.endswith("_env") and isinstance(item, str):
                    yield os.environ.get(item, "")
                yield from known_secrets(item, is_secret=is_secret or _hides(name))
        case list() | tuple():
            for item in cast("list[Any]", value):
                yield from known_secrets(item, is_secret=is_secret)
        case str() if is_secret:
            yield value
        case _:
            return


def _hides(name: str) -> bool:
    return name in _WHOLLY_SECRET or (not name.endswith("_env") and _NAMES.search(name) is not None)
