"""One prompt from an editor: its content, its state and its response."""

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

PromptBlock = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message's text and its attached files."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def read_prompt(blocks: Sequence[PromptBlock]) -> PromptMessage:
    """Convert a prompt to a message. Links keep their position in the text; embedded texts are added at the end."""
    text_parts: list[str] = []
    embedded_texts: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                text_parts.append(block.text)
            case ResourceContentBlock():
                text_parts.append(f"[{block.name}]({path_or_uri(block.uri)})")
            case ImageContentBlock():
                attachments.append(Attachment(block.mime_type, _file_name(block.uri or ""), block.data))
            case EmbeddedResourceContentBlock():
                _add_embedded(block, text_parts, embedded_texts, attachments)
            case AudioContentBlock():
                attachments.append(Attachment(block.mime_type, "a recording", block.data))
    text = "\n\n".join(part for part in ("".join(text_parts), *embedded_texts) if part)
    return PromptMessage(text, tuple(attachments))


def path_or_uri(uri: str) -> str:
    """Return the path of a `file:` URI, and any other URI unchanged."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri


def _add_embedded(
    block: EmbeddedResourceContentBlock, text_parts: list[str], embedded_texts: list[str], attachments: list[Attachment]
) -> None:
    resource = block.resource
    source = path_or_uri(resource.uri)
    if isinstance(resource, TextResourceContents):
        text_parts.append(f"[{_file_name(resource.uri)}]({source})")
        embedded_texts.append(f'<context place="{source}">\n{resource.text}\n</context>')
    else:
        media_type = resource.mime_type or "application/octet-stream"
        attachments.append(Attachment(media_type, _file_name(resource.uri), resource.blob))


def _file_name(uri: str) -> str:
    return unquote(urlsplit(uri).path.rstrip("/").rpartition("/")[2]) or uri


INTERNAL_ERROR = -32603


def to_response(end: TurnEnd) -> PromptResponse:
    """Return the response to a prompt whose turn has ended.

    Raises:
        RequestError: The turn failed. The message is the provider's own text.
    """
    match end.outcome:
        case Completed():
            return PromptResponse(stop_reason="end_turn", usage=_to_acp_usage(end))
        case Interrupted():
            return PromptResponse(stop_reason="cancelled", usage=_to_acp_usage(end))
        case LimitReached(limit=limit):
            reason: StopReason = "max_tokens" if "tokens" in limit else "max_turn_requests"
            return PromptResponse(stop_reason=reason, usage=_to_acp_usage(end))
        case Failed(error=error):
            raise prompt_error(error.message, error.code)


def prompt_error(message: str, code: str) -> RequestError:
    """Return an error that the editor shows to its user."""
    return RequestError(INTERNAL_ERROR, message, {"code": code})


def _to_acp_usage(end: TurnEnd) -> Usage | None:
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


PromptEnd = TurnEnd | RequestError | None
"""How a prompt ended: with its turn, with an error, or without a turn (None), such as for a withdrawn message."""

_STARTED_STATES = (ReceiptState.STARTED, ReceiptState.STEERED)


class EditorPrompt:
    """The state of a prompt. A stop is recorded here, so that it affects this prompt and no other."""

    def __init__(self, message: str, stopped_by: str = "") -> None:
        self.message = message
        self.turn = ""
        self.stopped_by = stopped_by
        self.is_sent = False
        self.is_queued = False
        self.command_scope = CancelScope()
        self.finished = asyncio.Event()
        self._end: asyncio.Future[PromptEnd] = asyncio.get_running_loop().create_future()

    @property
    def is_running(self) -> bool:
        """True from the moment the message is sent until the prompt ends."""
        return self.is_sent and not self._end.done()

    def stop(self, source: str) -> None:
        """Record a stop. Later stops are ignored."""
        if not self._end.done():
            self.stopped_by = self.stopped_by or source
            self.command_scope.cancel()

    def apply_receipt(self, receipt: Receipt) -> None:
        """Update the state with the message's receipt."""
        if receipt.state is ReceiptState.WITHDRAWN:
            self.finish(None)
        elif receipt.state is ReceiptState.REFUSED:
            self.finish(prompt_error(receipt.reason or "The queue is full.", "queue_full"))
        elif receipt.state in _STARTED_STATES:
            self.turn = self.turn or receipt.turn or ""
        self.is_queued = not self.turn

    def assign_turn(self, turn: str) -> None:
        """Record the turn that processes the message."""
        self.turn = turn
        self.is_queued = False

    def finish(self, end: PromptEnd) -> None:
        """End the prompt. Later calls are ignored."""
        if not self._end.done():
            self._end.set_result(end)

    async def wait_for_end(self) -> PromptEnd:
        """Wait until the prompt has ended, and return how it ended."""
        return await self._end
