"""The embedded model: small, slow and honest about it, but there without a key and without a network."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import aiohttp

from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.protocol.provider import Chunk, Request
from hark.providers.local.server import MODEL_NAME, LocalServer
from hark.providers.openai.chat import OpenAIChat

HONEST = (
    f"This is {MODEL_NAME}, a small demonstration model: it can chat, but don't trust what it says, and it gets no "
    "tools. Connect a better one with `hark setup`, or set OPENROUTER_API_KEY."
)
SYSTEM = "You are a helpful AI assistant named Hark."
MAX_TOKENS = 1024
# It reads slowly, so it gets only the end of a long conversation; and as what it has read is not read again while the
# beginning stays the same, the beginning moves on in large steps. In bytes, because no text has more tokens than bytes.
MAX_BYTES = 5000
STEP_BYTES = 2500
FRAME_BYTES = 10  # what a message takes besides its words


class LocalModel:
    """A model in a child process. Closing a stream stops its generation; `close` ends the process."""

    def __init__(self, session: aiohttp.ClientSession, notice: Callable[[str], None]) -> None:
        """`notice` gets lines that a person should see: that it starts, and what it is."""
        self.server = LocalServer(notice)
        self._session = session
        self._notice = notice
        self._has_told = False

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply's chunks, starting the model first where needed; see `Provider.stream`.

        Tools, the system prompt and the beginning of a long conversation are more than it can take in: they stay away.
        """
        endpoint = await self.server.endpoint()
        if not self._has_told:
            self._has_told = True
            self._notice(HONEST)
        async with aclosing(OpenAIChat(self._session, endpoint).stream(shortened(request))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def close(self) -> None:
        """End the process, within a second or so."""
        await self.server.close()


def shortened(request: Request) -> Request:
    """Return what the model can take in of a request."""
    spoken = [short for message in request.messages if (short := _spoken(message)) is not None]
    excess = sum(_size(message) for message in spoken) - MAX_BYTES
    dropped = -(-max(0, excess) // STEP_BYTES) * STEP_BYTES
    while dropped > 0 and len(spoken) > 1:
        dropped -= _size(spoken.pop(0))
    tokens = min(request.max_tokens or MAX_TOKENS, MAX_TOKENS)
    return Request(SYSTEM, spoken, max_tokens=tokens)


def _size(message: UserMessage | AssistantMessage) -> int:
    return len(message.text.encode(errors="replace")) + FRAME_BYTES


def _spoken(message: Message) -> UserMessage | AssistantMessage | None:
    """Return the message's words alone, or None when it has none."""
    match message:
        case UserMessage():
            return UserMessage(message.id, _end(message.text))
        case AssistantMessage():
            return AssistantMessage(_end(message.text)) if message.text else None
        case Note():
            return UserMessage("", _end(message.text))
        case CallResult():
            return None


def _end(text: str) -> str:
    """A single message may be too long, too: its end counts."""
    return text.encode(errors="replace")[-MAX_BYTES + FRAME_BYTES :].decode(errors="ignore")
