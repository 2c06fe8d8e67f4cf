"""Messages that come as lines of JSON, cut anywhere."""

from collections.abc import Iterator

import mcp_types as types
from mcp.shared.message import SessionMessage

from hark.mcp.failure import ServerFailure
from hark.mcp.transports.transport import MESSAGE_BYTES


class Lines:
    """Takes bytes as they come and gives whole lines."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Give the lines that end in this piece.

        Raises:
            ServerFailure: A line is too long to be kept.
        """
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield b"".join((*self._pieces, end))
            self._pieces, self._size = [], 0
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > MESSAGE_BYTES:
            raise ServerFailure(f"it sent a message of more than {MESSAGE_BYTES // 1024 // 1024} MB")


def read_message(line: bytes) -> SessionMessage | None:
    """Return the message in a line; None when it is none."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None
