"""Models of a power cut: which operations before the cut survive, and the folder that results."""

import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

from tests.power_cuts.disk.operations import (
    Change,
    ChangeMode,
    Create,
    Link,
    Mark,
    Operation,
    Remove,
    Rename,
    Sync,
    Truncate,
    Write,
)
from tests.power_cuts.disk.tree import Node, Tree

SECTOR_BYTES = 512
PAGE_BYTES = 4096
NEVER = 1 << 60


class Model(StrEnum):
    """The guarantees of a file system.

    In every model a synced file has its content, and a synced folder has its entries. A file's name is an entry of its
    folder, so it needs the sync of the folder.
    """

    STRICT = "strict"  # nothing else survives
    METADATA_FIRST = "metadata first"  # all entries survive; unsynced data is missing or zero
    TORN = "torn"  # of each folder and file a prefix survives; the last write is cut at a sector
    RANDOM = "random"  # entries survive in any subset that keeps the order of each name; pages survive in any subset


Survivors = Iterator[Change]


class Disk:
    """A recording from which the folder after a power cut can be rebuilt."""

    def __init__(self, base: Tree, operations: Sequence[Operation], *, ignores_syncs: bool = False) -> None:
        self._base = base
        self._operations = operations
        self._durable_at = _find_durable_times([] if ignores_syncs else operations, operations)

    def after_cut(self, cut: int, model: Model, pick: random.Random) -> Tree:
        """Return the folder after a power cut before operation number `cut`."""
        choose = _CHOICES[model]
        tree = self._base.copy()
        for operation in self._operations[:cut]:
            if isinstance(operation, Create):  # the inode; its entry may be missing
                tree.nodes[operation.inode] = Node(operation.mode, target=operation.target)
        changes = [
            (operation, self._durable_at[number] <= cut)
            for number, operation in enumerate(self._operations[:cut])
            if not isinstance(operation, Sync | Mark)
        ]
        for change in choose(changes, pick):
            tree.apply(change)
        return tree

    def after_kill(self, cut: int) -> Tree:
        """Return the folder after a kill -9, in which every operation before the cut survives."""
        tree = self._base.copy()
        for operation in self._operations[:cut]:
            if not isinstance(operation, Sync | Mark):
                tree.apply(operation)
        return tree


def _find_durable_times(syncs: Sequence[Operation], operations: Sequence[Operation]) -> list[int]:
    """Return for each operation the number of the first cut that it survives in every model."""
    by_inode: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
    for number, operation in enumerate(syncs):
        if isinstance(operation, Sync):
            by_inode[operation.inode].append((operation.start, number + 1))
    for ends in by_inode.values():
        ends.sort()
        for index in reversed(range(len(ends) - 1)):  # a sync that began later may have ended earlier
            ends[index] = ends[index][0], min(ends[index][1], ends[index + 1][1])
    times: list[int] = []
    for number, operation in enumerate(operations):
        found = NEVER
        if not isinstance(operation, Sync | Mark):
            for inode in (_synced_inode(operation), None):
                ends = by_inode.get(inode, [])
                first = bisect_left(ends, (number + 1, 0))
                found = min(found, ends[first][1] if first < len(ends) else NEVER)
        times.append(found)
    return times


def _synced_inode(change: Change) -> int:
    """Return the folder of an entry operation, or the file of a data operation."""
    return change.folder if isinstance(change, Create | Link | Remove | Rename) else change.inode


Choice = Callable[[list[tuple[Change, bool]], random.Random], Survivors]


def _strict(changes: list[tuple[Change, bool]], pick: random.Random) -> Survivors:
    return (change for change, is_durable in changes if is_durable)


def _metadata_first(changes: list[tuple[Change, bool]], pick: random.Random) -> Survivors:
    sizes_survive: dict[int, bool] = {}
    for change, is_durable in changes:
        if is_durable or not isinstance(change, Write):
            yield change
        elif sizes_survive.setdefault(change.inode, pick.random() < 0.5):
            yield Write(change.inode, change.offset + len(change.data), b"")  # zeros up to this size


def _torn(changes: list[tuple[Change, bool]], pick: random.Random) -> Survivors:
    pending: dict[int, int] = defaultdict(int)
    for change, is_durable in changes:
        pending[_synced_inode(change)] += not is_durable
    remaining = {inode: pick.randint(0, count) for inode, count in pending.items()}
    for change, is_durable in changes:
        inode = _synced_inode(change)
        if is_durable:
            yield change
        elif remaining[inode] > 0:
            remaining[inode] -= 1
            yield change
        elif remaining[inode] == 0:
            remaining[inode] = -1
            if isinstance(change, Write):
                sectors = pick.randint(0, len(change.data) // SECTOR_BYTES)
                yield Write(inode, change.offset, change.data[: sectors * SECTOR_BYTES])


def _random(changes: list[tuple[Change, bool]], pick: random.Random) -> Survivors:
    lost: set[tuple[int, bytes]] = set()
    for change, is_durable in changes:
        if is_durable:
            yield change
            continue
        match change:
            case Create() | Link() | Remove() | Rename():
                slots = {(change.folder, change.name)}
                if isinstance(change, Rename):
                    slots.add((change.source, change.source_name))
                if slots & lost or pick.random() < 0.5:
                    lost |= slots
                else:
                    yield change
            case Write(inode, offset, data):
                for start in range(0, len(data), PAGE_BYTES):
                    if pick.random() < 0.5:
                        yield Write(inode, offset + start, data[start : start + PAGE_BYTES])
            case Truncate() | ChangeMode():
                if pick.random() < 0.5:
                    yield change


_CHOICES: dict[Model, Choice] = {
    Model.STRICT: _strict,
    Model.METADATA_FIRST: _metadata_first,
    Model.TORN: _torn,
    Model.RANDOM: _random,
}
