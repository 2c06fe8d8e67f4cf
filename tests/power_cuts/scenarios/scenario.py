"""The interface of a scenario: actions that run under the recorder, and a check of the folder after a power cut."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec


@dataclass(frozen=True, slots=True)
class Problem:
    """A violated guarantee. `kind` is the defect in general, `detail` names the file."""

    kind: str
    detail: str


@dataclass(slots=True)
class CheckResult:
    """The problems after one power cut, and the replies of refused undos."""

    problems: list[Problem] = field(default_factory=list[Problem])
    refusals: list[str] = field(default_factory=list[str])

    def add(self, kind: str, detail: str) -> None:
        self.problems.append(Problem(kind, detail))


@dataclass(frozen=True, slots=True)
class Action:
    """An action of the scenario. `result` has the details of its acknowledgement."""

    name: str
    details: dict[str, Any]
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class History:
    """The actions that were acknowledged before the cut, and the one that was running."""

    done: list[Action]
    running: Action | None = None

    @classmethod
    def from_marks(cls, marks: Sequence[dict[str, Any]], count: int) -> "History":
        """Return the history after the first `count` marks."""
        actions = [Action(begin["begin"], begin, done) for begin, done in zip(marks[::2], marks[1::2], strict=True)]
        done, is_running = divmod(count, 2)
        return cls(actions[:done], actions[done] if is_running else None)

    def all_named(self, *names: str) -> list[Action]:
        """Return the acknowledged actions with one of these names."""
        return [action for action in self.done if action.name in names]

    def is_running(self, name: str) -> bool:
        return self.running is not None and self.running.name == name


class Marks:
    """Writes the marks of a scenario, which the recorder puts in order with the operations."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)

    @contextmanager
    def action(self, name: str, **details: Any) -> Generator[dict[str, Any]]:
        """Mark the begin of an action, and at the end its acknowledgement with the yielded result."""
        result: dict[str, Any] = {}
        self._write({"begin": name, **details})
        yield result
        self._write({"done": name, **result})

    def _write(self, content: dict[str, Any]) -> None:
        line = msgspec.json.encode(content) + b"\n"
        assert os.write(self._file, line) == len(line)


class Scenario(Protocol):
    """Actions on a home and a workspace in one folder, and the guarantees that a power cut must not break."""

    name: str

    def prepare(self, root: Path) -> None:
        """Create the files that are on disk before the recording."""
        ...

    async def run(self, root: Path, marks: Marks) -> None:
        """Do the actions. Runs in a recorded process."""
        ...

    async def check(self, root: Path, history: History, result: CheckResult) -> None:
        """Check the folder after a power cut. May change it."""
        ...


def write_durably(path: Path, content: bytes) -> None:
    """Write a file as careful programs do, so that the recorder counts it as durable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(file, content)
    os.fsync(file)
    os.close(file)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
