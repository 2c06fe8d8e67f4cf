"""The settings of `hark serve`: `[serve]` in config.toml."""

from typing import Annotated

from msgspec import Meta, Struct

PORT = 8377


class ServeSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The host and port of the server, and the rules for its clients.

    `hosts`: additional host names of the server, such as the name of a reverse proxy. `drain_seconds`: how long
    running turns may continue after a stop signal. `max_body_mb`: the maximum size of a request body.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = PORT
    token: str = ""
    token_env: str = ""
    hosts: tuple[str, ...] = ()
    drain_seconds: Annotated[float, Meta(ge=0)] = 10.0
    max_body_mb: Annotated[float, Meta(gt=0)] = 20.0
