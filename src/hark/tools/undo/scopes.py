"""The paths that a call says it will write, as they are on the disk."""
# Names of files are bytes here, and needn't be text.
# ruff: noqa: PTH118, PTH120

import os
from collections.abc import Sequence


def scopes_of(root: bytes, writes: Sequence[str], home: bytes) -> tuple[bytes, ...]:
    """Return where the writes would go: through no link, and with the folders above that aren't there yet.

    A last name that is a link stands for itself and for what it leads to: a tool may replace the one or write to the
    other. What lies in Hark's own folder is left out, unless the whole workspace lies there.
    """
    scopes: dict[bytes, None] = {}
    for path in writes:
        try:
            name = path.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            continue  # there can't be such a file
        if b"\0" in name:
            continue  # nor such a one
        full = os.path.join(root, name)
        folder, name = os.path.split(os.path.normpath(full))
        for place in (os.path.join(os.path.realpath(folder), name), os.path.realpath(full)):
            if place == b"/" or _is_in(root, place):
                scopes[root] = None  # no more than the workspace
            elif not _is_in(place, home) or (_is_in(root, home) and _is_in(place, root)):
                scopes.update(dict.fromkeys([*_missing_above(place), place]))
    return tuple(scopes)


def _missing_above(place: bytes) -> list[bytes]:
    missing: list[bytes] = []
    folder = os.path.dirname(place)
    while not os.path.lexists(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def _is_in(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder + b"/")
