"""The settings of `[surfaces.matrix]`."""

from collections.abc import Iterator

from hark.surfaces.chat.settings import ChatPlatform, ChatSettings


class MatrixSettings(ChatSettings, frozen=True, omit_defaults=True):
    """Matrix settings. `api_base` is the homeserver's URL; files above `attachment_megabytes` are not downloaded."""

    attachment_megabytes: float = 20.0


def _find_problems(settings: MatrixSettings) -> Iterator[str]:
    if not settings.api_base:
        yield "api_base, the URL of the homeserver, is required."


PLATFORM = ChatPlatform("matrix", MatrixSettings, find_problems=_find_problems)
