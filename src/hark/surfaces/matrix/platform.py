"""`[surfaces.matrix]`: what a Matrix account needs to be told."""

from collections.abc import Iterator

from hark.surfaces.chat.settings import ChatPlatform, ChatSettings


class MatrixSettings(ChatSettings, frozen=True, omit_defaults=True):
    """`api_base` is the homeserver's address. `attachment_megabytes`: larger files are named, and not fetched."""

    attachment_megabytes: float = 20.0


def _problems(settings: MatrixSettings) -> Iterator[str]:
    if not settings.api_base:
        yield "it needs api_base, the address of the homeserver."


PLATFORM = ChatPlatform("matrix", MatrixSettings, problems=_problems)
