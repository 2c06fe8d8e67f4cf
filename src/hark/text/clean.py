"""Text that can be stored, sent and read: valid Unicode, of bounded length, without wrappings."""

from typing import cast


def clean(text: str) -> str:
    """Return the text with lone surrogates replaced: no wire or store can carry them."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def cut_middle(text: str, limit: int) -> str:
    """Return the text with its middle left out when it is longer than `limit`, and say how much is gone."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def first_of(error: BaseException) -> BaseException:
    """Return the error that a person should read of those that a task group wrapped."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("tuple[BaseException, ...]", error.exceptions)[0]
    return error
