"""Makes untrusted file names safe to use."""

import unicodedata

from hark.text.graphemes import safe_cut

MAX_NAME_CHARACTERS = 100
_MAX_EXTENSION_CHARACTERS = 10


def sanitize_file_name(name: str | None, fallback: str = "file") -> str:
    """Return a file name without folders, invisible characters, or leading and trailing dots.

    A name that is too long is shortened before its extension. `fallback` is returned if nothing remains.
    """
    last = (name or "").replace("\\", "/").rpartition("/")[2]
    visible = "".join(
        character for character in last if unicodedata.category(character)[0] not in "CZ" or character == " "
    )
    clean = visible.strip(" .")
    if len(clean) > MAX_NAME_CHARACTERS:
        stem, dot, extension = clean.rpartition(".")
        tail = dot + extension if 0 < len(extension) <= _MAX_EXTENSION_CHARACTERS and stem else ""
        clean = clean[: safe_cut(clean, MAX_NAME_CHARACTERS - len(tail))].rstrip(" .") + tail
    return clean or fallback
