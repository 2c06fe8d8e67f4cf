"""Resolves the paths that a call is predicted to write."""
# File names are bytes here, because they may not be valid text.
# ruff: noqa: PTH118, PTH120

import os
from collections.abc import Sequence


def resolve_scopes(root: bytes, writes: Sequence[str], home: bytes) -> tuple[bytes, ...]:
    """Return the paths that the writes would change, with links resolved, and their missing parent folders.

    If the last path component is a link, both the link and its target are included, because a tool may replace the
    link or write to the target. Paths in Hark's home are left out, unless the whole workspace is inside Hark's home.
    """
    scopes: dict[bytes, None] = {}
    for path in writes:
        try:
            name = path.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            continue  # no such file can exist
        if b"\0" in name:
            continue  # nor can this
        full = os.path.join(root, name)
        folder, name = os.path.split(os.path.normpath(full))
        for target in (os.path.join(os.path.realpath(folder), name), os.path.realpath(full)):
            if target == b"/" or _is_inside(root, target):
                scopes[root] = None  # never more than the workspace
            elif not _is_inside(target, home) or (_is_inside(root, home) and _is_inside(target, root)):
                scopes.update(dict.fromkeys([*_missing_parents(target), target]))
    return tuple(scopes)


def _missing_parents(path: bytes) -> list[bytes]:
    missing: list[bytes] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def _is_inside(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder + b"/")
