"""Files that came with a message and that no model can look at: kept where the agent's tools can read them."""

import base64
import hashlib
import os
import re
from itertools import count
from pathlib import Path

from hark.disk.private_files import private_folder
from hark.protocol.messages import Attachment
from hark.protocol.store import StoreError

PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
NAME_BYTES = 120  # file systems take 255, and a number may come before it
_NOT_IN_NAMES = re.compile(r"[^\w.+-]")


def kept(home: Path, session: str, message: str, attachment: Attachment) -> Attachment:
    """Return the attachment as the agent can use it: a picture as it is, another file with its path.

    Raises:
        StoreError: It could not be kept.
    """
    if attachment.media_type in PICTURES or not attachment.data:
        return attachment
    root = home / "attachments"
    folder = root / _folder(session) / _folder(message)
    try:
        private_folder(folder)
        # Somebody may have put a link where the folder belongs: what strangers send goes nowhere else.
        if folder.resolve() != root.resolve() / folder.relative_to(root):
            raise StoreError(f"{attachment.name or 'An attachment'} could not be kept: {folder} leads elsewhere.")
        path = _written(folder, _plain(attachment.name) or "file", base64.b64decode(attachment.data))
    except OSError as error:
        raise StoreError(f"{attachment.name or 'An attachment'} could not be kept: {error.strerror}.") from error
    return Attachment(attachment.media_type, attachment.name, path=str(path))


def _written(folder: Path, name: str, content: bytes) -> Path:
    """Return where the content is in the folder now; nothing that is there is changed or followed elsewhere."""
    for number in count(1):
        path = folder / (name if number == 1 else f"{number}-{name}")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
                return path
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        return path
    raise AssertionError("numbers have no end")


def _folder(name: str) -> str:
    """Return the name of a folder that no other name has."""
    plain = _plain(name)
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _plain(name: str) -> str:
    """Return a name that leads nowhere else, and that every file system takes."""
    plain = _NOT_IN_NAMES.sub("_", name).encode(errors="replace")[-NAME_BYTES:].decode(errors="ignore")
    return plain.lstrip(".")
