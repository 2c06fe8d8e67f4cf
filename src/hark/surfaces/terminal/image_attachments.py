"""Pictures that are named in a message, or whose path was pasted: they go along with it."""

import base64
import re
from pathlib import Path

from hark.protocol.messages import Attachment

MOST_BYTES = 5_000_000
_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
_NAMED = re.compile(r"\.(?:png|jpe?g|gif|webp)\b", re.IGNORECASE)
_PATH = re.compile(r"""(?:^|\s)@?(?:'([^']+)'|"([^"]+)"|((?:\\\s|\S)+))""")


def pictures_in(text: str, workspace: Path) -> tuple[list[Attachment], list[str]]:
    """Return the pictures that a text names, and what was wrong with those that can't go along."""
    found: list[Attachment] = []
    wrong: list[str] = []
    for match in _PATH.finditer(text) if _NAMED.search(text) else ():
        name = next(group for group in match.groups() if group).replace("\\ ", " ").removeprefix("file://")
        kind = _TYPES.get(Path(name).suffix.lower())
        if kind is None:
            continue
        path = workspace / Path(name).expanduser()
        try:
            if not path.is_file():
                continue
            data = path.read_bytes() if path.stat().st_size <= MOST_BYTES else None
        except OSError as error:
            wrong.append(f"{name} can't be read: {error}")
            continue
        if data is None:
            wrong.append(f"{name} is larger than {MOST_BYTES // 1_000_000} MB and was not sent along")
        else:
            found.append(Attachment(kind, path.name, base64.b64encode(data).decode(), str(path)))
    return found, wrong
