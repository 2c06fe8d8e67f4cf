"""The embedded model: a small, slow demo model that needs neither a key nor a network."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import aiohttp

from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.protocol.provider import Chunk, Request
from hark.providers.local.server import MODEL_NAME, LocalServer
from hark.providers.openai.chat import OpenAIChat

DEMO_NOTICE = (
    f"You're using a tiny built-in demo model ({MODEL_NAME}). It can chat, but its answers are unreliable, and it "
    "can't use tools. Connect a real one with `hark setup`, or set OPENROUTER_API_KEY."
)
SYSTEM_PROMPT = "You are a helpful AI assistant named Hark."
MAX_TOKENS = 1024
# The model reads slowly, so it gets only the end of a long conversation. It caches an unchanged start, so the start
# is trimmed in large steps. Limits are in bytes, because a text never has more tokens than bytes.
MAX_PROMPT_BYTES = 5000
TRIM_STEP_BYTES = 2500
MESSAGE_OVERHEAD_BYTES = 10  # added to the text of each message


class LocalModel:
    """A provider for the embedded model. Closing a stream stops the generation; `close` stops the child process."""

    def __init__(self, session: aiohttp.ClientSession, notify: Callable[[str], None]) -> None:
        """Create the provider. `notify` receives user notices: the model is starting, is ready, or is only a demo."""
        self.server = LocalServer(notify)
        self._session = session
        self._notify = notify
        self._has_shown_notice = False

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply's chunks, and start the model first if necessary; see `Provider.stream`.

        Tools, the system prompt and the start of a long conversation are omitted, because the model can't handle
        them.
        """
        endpoint = await self.server.wait_for_endpoint()
        if not self._has_shown_notice:
            self._has_shown_notice = True
            self._notify(DEMO_NOTICE)
        async with aclosing(OpenAIChat(self._session, endpoint).stream(shorten_request(request))) as chunks:
            async for chunk in chunks:
                yield chunk

    async def close(self) -> None:
        """Stop the process, normally within a second."""
        await self.server.close()


def shorten_request(request: Request) -> Request:
    """Return the part of a request that the model can handle."""
    messages = [short for message in request.messages if (short := _to_text_message(message)) is not None]
    excess = sum(_count_bytes(message) for message in messages) - MAX_PROMPT_BYTES
    dropped = -(-max(0, excess) // TRIM_STEP_BYTES) * TRIM_STEP_BYTES
    while dropped > 0 and len(messages) > 1:
        dropped -= _count_bytes(messages.pop(0))
    tokens = min(request.max_tokens or MAX_TOKENS, MAX_TOKENS)
    return Request(SYSTEM_PROMPT, messages, max_tokens=tokens)


def _count_bytes(message: UserMessage | AssistantMessage) -> int:
    return len(message.text.encode(errors="replace")) + MESSAGE_OVERHEAD_BYTES


def _to_text_message(message: Message) -> UserMessage | AssistantMessage | None:
    """Return a message with only its text, or None if it has no text for the model."""
    match message:
        case UserMessage():
            return UserMessage(message.id, _truncate_start(message.text))
        case AssistantMessage():
            return AssistantMessage(_truncate_start(message.text)) if message.text else None
        case Note():
            return UserMessage("", _truncate_start(message.text))
        case CallResult():
            return None


def _truncate_start(text: str) -> str:
    """Drop the start of a text that is too long for the model."""
    return text.encode(errors="replace")[-MAX_PROMPT_BYTES + MESSAGE_OVERHEAD_BYTES :].decode(errors="ignore")
