"""Commands and records as JSON bodies, and back."""

import json
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from hark.protocol.commands import Command
from hark.protocol.records import AnyRecord
from hark.protocol.store import StoreUnusable

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
COMMANDS: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
RECORDS: msgspec.json.Decoder[AnyRecord] = msgspec.json.Decoder(AnyRecord)


def encode(value: Command | AnyRecord) -> bytes:
    """Return the body. Half a surrogate pair, which no encoding can keep, becomes a question mark."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
        return text.encode(errors="replace")


def decode(decoder: msgspec.json.Decoder[T], rows: Iterable[tuple[int, bytes]], where: str) -> list[tuple[int, T]]:
    """Return each row's number with what its body says.

    Raises:
        StoreUnusable: A body can't be read; the text names `where` and the row's number.
    """
    decoded: list[tuple[int, T]] = []
    body: Any
    for seq, body in rows:
        try:
            decoded.append((seq, decoder.decode(body)))
        except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
            raise StoreUnusable(
                f"Entry {seq} of the {where} can't be read ({error}). The database was not changed. Upgrade Hark if a "
                "newer one wrote it; else restore a backup, or delete this session."
            ) from error
    return decoded
