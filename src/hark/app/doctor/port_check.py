"""Whether a server can be reached at all: its name is found, and something listens there."""

import socket

from hark.app.doctor.results import Finding, Level, in_time

REACH_SECONDS = 2.0


async def reach(host: str, port: int) -> str:
    """Return why nothing listens at that address, or "". Bounded, also where no name server answers."""

    def look() -> list[Finding]:
        try:
            socket.create_connection((host, port), REACH_SECONDS).close()
        except socket.gaierror:
            return [Finding(host, Level.BAD, f"the name {host} is not known: no network, or a wrong address.")]
        except TimeoutError:
            return [Finding(host, Level.BAD, f"{host} does not answer: no network, or a firewall.")]
        except OSError as error:
            return [Finding(host, Level.BAD, f"nothing listens at {host}:{port}: {error.strerror or error}.")]
        return []

    return "".join(finding.text for finding in await in_time(host, look, REACH_SECONDS))
