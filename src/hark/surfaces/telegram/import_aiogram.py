"""aiogram, imported without all that we don't use of it."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

# What we ask for, and what we put into our calls; what stands in these is built with them.
USED = (
    *("User", "Chat", "Message", "CallbackQuery", "Update", "File", "ResponseParameters", "ReplyParameters"),
    *("LinkPreviewOptions", "ReactionTypeEmoji", "InlineKeyboardButton", "InlineKeyboardMarkup"),
)
CALLED = (
    *("SendMessage", "EditMessageText", "SendVoice", "SendDocument", "SendChatAction", "SetMessageReaction"),
    *("AnswerCallbackQuery", "GetFile", "GetMe", "GetUpdates"),
)


def load_library() -> None:
    """Import it. It builds a validator for each of its 400 types, for seconds; so only those that we use are built.

    Meanwhile the types of other libraries are built as ever.
    """
    from pydantic import BaseModel

    build: Callable[..., bool | None] = vars(BaseModel)["model_rebuild"].__func__
    left: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {}

    def put_off(kind: type[BaseModel], **how: Any) -> bool | None:
        if not kind.__module__.startswith("aiogram.types."):
            return build(kind, **how)
        left[kind.__name__] = kind, how
        return None

    setattr(BaseModel, "model_rebuild", classmethod(put_off))  # noqa: B010
    try:
        import_module("aiogram.types")
    finally:
        setattr(BaseModel, "model_rebuild", classmethod(build))  # noqa: B010
    for name in USED:
        if name in left:
            kind, how = left[name]
            kind.model_rebuild(**how)
    calls = vars(import_module("aiogram.methods"))
    for name in CALLED if left else ():
        calls[name].model_rebuild(**left[USED[0]][1])
