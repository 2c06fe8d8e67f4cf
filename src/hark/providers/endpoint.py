"""Where a model is reached, and with which key."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MIN_SECRET = 8


def _no_headers() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model at a server. Its key and headers are never shown."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    stream: bool = True
    extra_headers: Mapping[str, str] = field(default_factory=_no_headers, repr=False)

    @property
    def key(self) -> str:
        """The key, without the line end that a file may have left at it."""
        return self.api_key.strip()

    @property
    def secrets(self) -> list[str]:
        """What must not be shown should a server repeat it; short header values are no secrets, only words."""
        return [self.key, *(value for value in self.extra_headers.values() if len(value) >= MIN_SECRET)]
