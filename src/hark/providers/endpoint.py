"""The base URL, name and credentials of a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MIN_SECRET_CHARACTERS = 8


def _no_headers() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model on a server. Its key and headers are never printed."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    stream: bool = True
    extra_headers: Mapping[str, str] = field(default_factory=_no_headers, repr=False)

    @property
    def key(self) -> str:
        """The API key without surrounding whitespace, such as a trailing newline from a file."""
        return self.api_key.strip()

    @property
    def secrets(self) -> list[str]:
        """The key and header values to redact if a server repeats them. Short header values aren't secrets."""
        return [self.key, *(value for value in self.extra_headers.values() if len(value) >= MIN_SECRET_CHARACTERS)]
