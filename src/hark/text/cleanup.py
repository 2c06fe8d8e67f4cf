"""Prepares text for storage and display: valid Unicode, limited length, unwrapped errors."""

from typing import cast

from hark.text.graphemes import safe_cut


def replace_surrogates(text: str) -> str:
    """Return the text with lone surrogates replaced, because no protocol or store can represent them."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def truncate_middle(text: str, max_characters: int) -> str:
    """Return the text, with its middle replaced by a note on the omitted length if it exceeds `max_characters`."""
    if len(text) <= max_characters:
        return text
    half = max_characters // 2
    start, end = safe_cut(text, half), safe_cut(text, len(text) - half)
    return f"{text[:start]}\n[... {end - start:,} characters omitted ...]\n{text[end:]}"


def unwrap_error(error: BaseException) -> BaseException:
    """Return the first error inside nested exception groups, which is the one to show to the user."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("tuple[BaseException, ...]", error.exceptions)[0]
    return error
