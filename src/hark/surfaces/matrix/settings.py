"""`[surfaces.matrix]`: what a Matrix account needs to be told."""

from hark.surfaces.chat.settings import ChatSettings


class MatrixSettings(ChatSettings, frozen=True, omit_defaults=True):
    """`api_base` is the homeserver's address. `attachment_megabytes`: larger files are named, and not fetched."""

    attachment_megabytes: float = 20.0
