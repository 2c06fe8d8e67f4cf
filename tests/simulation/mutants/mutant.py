"""A mutant: the description of a bug, and the patches that plant it in the engine or the store."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug to plant. Each patch is an owner, the name of the attribute to replace, and the replacement."""

    description: str
    patches: tuple[tuple[object, str, Any], ...]
    first_seed: int = 0  # the seed at which the search starts; the bug may be found at any seed

    @property
    def name(self) -> str:
        """The mutant's name in test ids and tables."""
        return "-".join(self.description.lower().replace(",", "").replace("'", "").split()[:7])

    @contextmanager
    def planted(self) -> Generator[None]:
        """Plant the bug for the duration of the context."""
        with ExitStack() as patched:
            for owner, attribute, buggy in self.patches:
                patched.enter_context(mock.patch.object(owner, attribute, buggy))
            yield


def do_nothing(*_: Any) -> None:
    """Do nothing."""
