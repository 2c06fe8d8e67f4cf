"""Makes connections. Importing this loads the SDK, which takes a second: do it when a server is wanted, in a thread."""

from collections.abc import Callable

from hark.mcp.connection import Connection, Keeper
from hark.mcp.link import Link
from hark.mcp.oauth import LOGIN_SECONDS, Login
from hark.mcp.piped import PipedLink
from hark.mcp.place import ServerPlace
from hark.mcp.remote import RemoteLink
from hark.mcp.sdk_log import quiet_sdk


def make_connection(place: ServerPlace, keeper: Keeper, wants_login: Callable[[str], None]) -> Connection:
    """Return a connection that is still to be run. `wants_login` hears the page that a person has to open."""

    def begun(page: str) -> None:
        connection.wait_longer(LOGIN_SECONDS)
        wants_login(page)

    quiet_sdk()
    connection = Connection(place, _link(place, begun), keeper)
    return connection


def _link(place: ServerPlace, begun: Callable[[str], None]) -> Link:
    settings = place.settings
    if settings.command:
        return PipedLink(settings, place.workspace, place.log, place.spawn)
    return RemoteLink(settings, Login(settings.login, place.token_file, begun) if settings.login else None)
