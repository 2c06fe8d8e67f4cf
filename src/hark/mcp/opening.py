"""Makes connections. Importing this loads the SDK, which takes a second: do it when a server is wanted, in a thread."""

from collections.abc import Callable

from hark.mcp.auth import LOGIN_SECONDS, OAuthLogin
from hark.mcp.connection import ConnectionListener, McpConnection
from hark.mcp.logs import quiet_sdk
from hark.mcp.server_context import ServerPlace
from hark.mcp.transports.piped import PipedLink
from hark.mcp.transports.remote import RemoteLink
from hark.mcp.transports.transport import McpTransport


def make_connection(
    place: ServerPlace, keeper: ConnectionListener, wants_login: Callable[[str], None]
) -> McpConnection:
    """Return a connection that is still to be run. `wants_login` hears the page that a person has to open."""

    def begun(page: str) -> None:
        connection.wait_longer(LOGIN_SECONDS)
        wants_login(page)

    quiet_sdk()
    connection = McpConnection(place, _link(place, begun), keeper)
    return connection


def _link(place: ServerPlace, begun: Callable[[str], None]) -> McpTransport:
    settings = place.settings
    if settings.command:
        return PipedLink(settings, place.places.workspace, place.log, place.spawn)
    return RemoteLink(settings, OAuthLogin(settings.login, place.token_file, begun) if settings.login else None)
