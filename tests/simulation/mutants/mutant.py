"""What a mutant is: a story, and the patches that make the engine or the store do it."""

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug. Each patch is an owner, the name of its attribute, and what takes its place."""

    story: str
    patches: tuple[tuple[object, str, Any], ...]
    near: int = 0  # the seed at which the search for it begins; it may be found anywhere

    @property
    def name(self) -> str:
        """A name for tests and tables."""
        return "-".join(self.story.lower().replace(",", "").replace("'", "").split()[:7])

    @contextmanager
    def alive(self) -> Generator[None]:
        """Have the bug, for a while."""
        with ExitStack() as patched:
            for owner, attribute, buggy in self.patches:
                patched.enter_context(mock.patch.object(owner, attribute, buggy))
            yield


def nothing(*_: Any) -> None:
    """Do nothing, in place of something."""
