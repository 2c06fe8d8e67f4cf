"""Files that came with a message and that no model can look at: kept where the agent's tools can read them."""

import base64
import re
from pathlib import Path

from hark.protocol.messages import Attachment
from hark.protocol.store import StoreError

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
NAME_CHARACTERS = 100
_NOT_IN_NAMES = re.compile(r"[^\w.+-]")


def kept(home: Path, session: str, message: str, attachment: Attachment) -> Attachment:
    """Return the attachment as the agent can use it: a picture as it is, another file with its path.

    Raises:
        StoreError: It could not be kept.
    """
    if attachment.media_type in PICTURES or not attachment.data:
        return attachment
    folder = home / "attachments" / _plain(session) / _plain(message)
    path = folder / (_plain(attachment.name) or "file")
    number = 1
    while path.exists() and path.read_bytes() != base64.b64decode(attachment.data):
        number += 1
        path = folder / f"{number}-{_plain(attachment.name) or 'file'}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(attachment.data))
    except OSError as error:
        raise StoreError(f"{attachment.name or 'An attachment'} could not be kept: {error.strerror}.") from error
    return Attachment(attachment.media_type, attachment.name, path=str(path))


def _plain(name: str) -> str:
    """Return a name that leads nowhere else."""
    return _NOT_IN_NAMES.sub("_", name)[-NAME_CHARACTERS:].lstrip(".")
