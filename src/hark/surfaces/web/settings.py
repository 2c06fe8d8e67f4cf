"""The settings of `hark serve`: `[serve]` in config.toml."""

from typing import Annotated

from msgspec import Meta, Struct

PORT = 8377


class ServeSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where it listens, and who may talk to it.

    `hosts`: other names under which it is reached, such as that of a proxy before it. `drain_seconds`: how long
    running turns may go on when the program is asked to end. `max_body_mb` bounds what one request may bring.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = PORT
    token: str = ""
    token_env: str = ""
    hosts: tuple[str, ...] = ()
    drain_seconds: Annotated[float, Meta(ge=0)] = 10.0
    max_body_mb: Annotated[float, Meta(gt=0)] = 20.0
