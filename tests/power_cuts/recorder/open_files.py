"""The open files of all recorded processes, with their positions."""

from collections.abc import Iterable
from dataclasses import dataclass

from tests.power_cuts.recorder.system_calls import SystemCall

FORKS = ("clone", "clone3", "fork", "vfork")


@dataclass(slots=True)
class OpenFile:
    """An open file description. Duplicated descriptors and forked processes share it."""

    inode: int
    position: int = 0
    is_append: bool = False


class OpenFiles:
    """The descriptors of each process. Threads share the descriptors of their process."""

    def __init__(self, calls: Iterable[SystemCall]) -> None:
        self._parents: dict[int, tuple[int, bool]] = {}
        for call in calls:
            if call.name in FORKS:
                shares_files = any("CLONE_FILES" in argument for argument in call.arguments)
                self._parents[call.result] = call.process, shares_files
        self._tables: dict[int, dict[int, OpenFile]] = {}
        self._folders: dict[int, bytes] = {}

    def get(self, process: int, descriptor: int) -> OpenFile | None:
        return self._table(process).get(descriptor)

    def set(self, process: int, descriptor: int, file: OpenFile | None) -> None:
        """Record an opened or duplicated descriptor. None: the descriptor belongs to a file outside of the root."""
        if file is None:
            self._table(process).pop(descriptor, None)
        else:
            self._table(process)[descriptor] = file

    def working_folder(self, process: int) -> bytes:
        """Return the working directory of a process, or of its nearest known ancestor."""
        while process not in self._folders and process in self._parents:
            process = self._parents[process][0]
        return self._folders.get(process, b"/")

    def set_working_folder(self, process: int, folder: bytes) -> None:
        self._folders[process] = folder

    def _table(self, process: int) -> dict[int, OpenFile]:
        # A child's first call may complete before its parent's fork, so the table is copied here.
        if process not in self._tables:
            parent, shares_files = self._parents.get(process, (0, False))
            table = self._table(parent) if parent else {}
            self._tables[process] = table if shares_files else dict(table)
        return self._tables[process]
