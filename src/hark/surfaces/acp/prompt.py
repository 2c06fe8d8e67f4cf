"""One prompt of an editor, from its reading to its end."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from acp import RequestError
from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PromptResponse,
    ResourceContentBlock,
    StopReason,
    TextContentBlock,
    TextResourceContents,
    Usage,
)
from anyio import CancelScope

from hark.protocol.events import TurnEnd
from hark.protocol.messages import Attachment
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached
from hark.protocol.receipts import Receipt, ReceiptState

Block = TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message: its text, and the files that came with it."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def read_prompt(blocks: Sequence[Block]) -> PromptMessage:
    """Return the message. Links stand where they stood in the text; what was embedded comes behind it."""
    words: list[str] = []
    behind: list[str] = []
    files: list[Attachment] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                words.append(block.text)
            case ResourceContentBlock():
                words.append(f"[{block.name}]({place_of(block.uri)})")
            case ImageContentBlock():
                files.append(Attachment(block.mime_type, _name(block.uri or ""), block.data))
            case EmbeddedResourceContentBlock():
                _embed(block, words, behind, files)
            case AudioContentBlock():
                files.append(Attachment(block.mime_type, "a recording", block.data))
    return PromptMessage("\n\n".join(part for part in ("".join(words), *behind) if part), tuple(files))


def place_of(uri: str) -> str:
    """Return the path of a file, and any other address as it is."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri


def _embed(block: EmbeddedResourceContentBlock, words: list[str], behind: list[str], files: list[Attachment]) -> None:
    resource = block.resource
    place = place_of(resource.uri)
    if isinstance(resource, TextResourceContents):
        words.append(f"[{_name(resource.uri)}]({place})")
        behind.append(f'<context place="{place}">\n{resource.text}\n</context>')
    else:
        files.append(Attachment(resource.mime_type or "application/octet-stream", _name(resource.uri), resource.blob))


def _name(uri: str) -> str:
    return unquote(urlsplit(uri).path.rstrip("/").rpartition("/")[2]) or uri


FAILED = -32603


def respond(end: TurnEnd) -> PromptResponse:
    """Return the response to the prompt whose turn ended like this.

    Raises:
        RequestError: It failed; the words are the provider's own, for the person.
    """
    match end.outcome:
        case Completed():
            return PromptResponse(stop_reason="end_turn", usage=_usage(end))
        case Interrupted():
            return PromptResponse(stop_reason="cancelled", usage=_usage(end))
        case LimitReached(limit=limit):
            reason: StopReason = "max_tokens" if "tokens" in limit else "max_turn_requests"
            return PromptResponse(stop_reason=reason, usage=_usage(end))
        case Failed(error=error):
            raise failure(error.message, error.code)


def failure(words: str, code: str) -> RequestError:
    """Return an error that an editor shows to its person."""
    return RequestError(FAILED, words, {"code": code})


def _usage(end: TurnEnd) -> Usage | None:
    usage = end.usage
    total = usage.input_tokens + usage.output_tokens
    if not total:
        return None
    return Usage(
        total_tokens=total,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_read_tokens=usage.cached_tokens,
    )


End = TurnEnd | RequestError | None
"""How it ended: with its turn, by an error, or (None) without a turn, as a message that was taken back does."""

_TAKEN = (ReceiptState.STARTED, ReceiptState.STEERED)


class EditorPrompt:
    """What is known of it. A stop is noted on it, so that it can't miss it nor reach another."""

    def __init__(self, message: str, stopped_by: str = "") -> None:
        self.message = message
        self.turn = ""
        self.stopped_by = stopped_by
        self.is_said = False
        self.is_waiting = False
        self.command_scope = CancelScope()
        self.finished = asyncio.Event()
        self._end: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    @property
    def is_running(self) -> bool:
        """True from the step in which it was said until its end."""
        return self.is_said and not self._end.done()

    def stop(self, source: str) -> None:
        """Note a stop; the first one counts."""
        if not self._end.done():
            self.stopped_by = self.stopped_by or source
            self.command_scope.cancel()

    def follow(self, receipt: Receipt) -> None:
        """Take what became of its message."""
        if receipt.state is ReceiptState.WITHDRAWN:
            self.finish(None)
        elif receipt.state in _TAKEN:
            self.turn = self.turn or receipt.turn or ""
        self.is_waiting = not self.turn

    def take(self, turn: str) -> None:
        """A turn has taken it."""
        self.turn = turn
        self.is_waiting = False

    def finish(self, end: End) -> None:
        """It is over; the first end counts."""
        if not self._end.done():
            self._end.set_result(end)

    async def end(self) -> End:
        """Return how it ended."""
        return await self._end
