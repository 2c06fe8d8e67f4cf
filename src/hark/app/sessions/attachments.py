"""Stores attached files that a model can't read directly, so that the agent's tools can read them."""

import base64
import hashlib
import re
from itertools import count
from pathlib import Path

from hark.disk.private_files import create_private, create_private_folder
from hark.protocol.messages import Attachment
from hark.protocol.store import StoreError

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
NAME_BYTES = 120  # file systems allow 255, and a number may precede the name
_UNSAFE_CHARACTER = re.compile(r"[^\w.+-]")


def store_attachment(home: Path, session: str, message: str, attachment: Attachment) -> Attachment:
    """Store an attached file and return an attachment with its path. Images are returned unchanged.

    Raises:
        StoreError: The file could not be stored.
    """
    if attachment.media_type in IMAGE_TYPES or not attachment.data:
        return attachment
    root = home / "attachments"
    folder = root / _unique_folder_name(session) / _unique_folder_name(message)
    try:
        create_private_folder(folder)
        # A link may have been put in place of the folder. Files from strangers must not be written anywhere else.
        if folder.resolve() != root.resolve() / folder.relative_to(root):
            raise StoreError(
                f"{attachment.name or 'An attachment'} could not be saved: {folder} is a link to another location."
            )
        path = _write_new_file(folder, _safe_file_name(attachment.name) or "file", base64.b64decode(attachment.data))
    except OSError as error:
        raise StoreError(f"{attachment.name or 'An attachment'} could not be saved: {error.strerror}.") from error
    return Attachment(attachment.media_type, attachment.name, path=str(path))


def _write_new_file(folder: Path, name: str, content: bytes) -> Path:
    """Write the content to a new file and return its path. Never changes an existing file or follows a link."""
    for number in count(1):
        path = folder / (name if number == 1 else f"{number}-{name}")
        try:
            create_private(path, content)
        except FileExistsError:
            if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
                return path
            continue
        return path
    raise AssertionError("unreachable: the loop has no end")


def _unique_folder_name(name: str) -> str:
    """Convert a name to a safe folder name. Different names yield different folder names."""
    plain = _safe_file_name(name)
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def _safe_file_name(name: str) -> str:
    """Return a file name with unsafe characters replaced, shortened if needed."""
    plain = _UNSAFE_CHARACTER.sub("_", name).encode(errors="replace")[-NAME_BYTES:].decode(errors="ignore")
    return plain.lstrip(".")
