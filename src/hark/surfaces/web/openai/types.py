"""Requests and replies in the words of OpenAI's chat completions."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from hark.protocol.agent import PastMessage
from hark.protocol.messages import AssistantMessage, Attachment, Note, UserMessage
from hark.protocol.outcomes import Failed, LimitReached, Outcome, Usage
from hark.surfaces.web.api.attachments import MOST_ATTACHMENTS, from_data_url
from hark.surfaces.web.api.errors import ApiError

MOST_MESSAGES = 10_000
_LAST = "The last message must be the user's."


class SentPart(Struct, frozen=True):
    """A part of a message's content: text, a refusal, an image or a file. Images and files are data: URLs."""

    type: str
    text: str = ""
    image_url: dict[str, Any] | str | None = None
    file: dict[str, Any] | None = None
    refusal: str = ""


class SentTurn(Struct, frozen=True):
    """A message of the conversation."""

    role: Literal["user", "assistant", "system", "developer", "tool", "function"]
    content: str | list[SentPart] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None


class StreamOptions(Struct, frozen=True):
    """Options of a streamed response."""

    include_usage: bool = False


class CompletionRequest(Struct, frozen=True):
    """A chat completion request. Other fields, such as temperature, are ignored: the route sets them."""

    messages: Annotated[list[SentTurn], Meta(min_length=1, max_length=MOST_MESSAGES, description=_LAST)]
    model: str = ""
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    tools: list[Any] | None = None
    functions: list[Any] | None = None


class CompletionPrompt(Struct, frozen=True):
    """What a request asks: what was said before, and what is said now."""

    past: tuple[PastMessage, ...]
    text: str
    attachments: tuple[Attachment, ...]
    author: str


def read_prompt(request: CompletionRequest) -> CompletionPrompt:
    """Return what a request asks.

    Raises:
        ApiError: It can't be done.
    """
    if (request.n or 1) != 1:
        raise ApiError(400, "unsupported_parameter", "Only one choice is given: n must be 1.")
    if request.tools or request.functions:
        words = "The agent has tools of its own; those of a client can't be called. Leave `tools` away."
        raise ApiError(400, "unsupported_parameter", words)
    messages = request.messages
    first = len(messages)
    while first and messages[first - 1].role == "user":
        first -= 1
    if first == len(messages):
        raise ApiError(400, "bad_request", "The last message must be one of the user.")
    now = [_said(message) for message in messages[first:]]
    attachments = [attachment for _, attached in now for attachment in attached]
    text = "\n\n".join(text for text, _ in now if text)
    if not text.strip() and not attachments:
        raise ApiError(400, "empty", "The last message says nothing.")
    if len(attachments) > MOST_ATTACHMENTS:
        raise ApiError(400, "bad_attachment", f"A message may have {MOST_ATTACHMENTS} attachments at most.")
    past = tuple(_past(number, message) for number, message in enumerate(messages[:first], 1))
    return CompletionPrompt(past, text, tuple(attachments), _author(messages[-1]))


def _past(number: int, message: SentTurn) -> PastMessage:
    """Return what was said before. Calls of a client's own tools are told in words: nobody here can make them."""
    text, attachments = _said(message)
    match message.role:
        case "user":
            return UserMessage(f"past-{number}", text, _author(message), tuple(attachments))
        case "assistant":
            calls = "".join(f"\n[called {_called(call)}]" for call in message.tool_calls or ())
            return AssistantMessage(f"{text}{calls}".strip())
        case "system" | "developer":
            return Note(f"[Instructions of the program that asks:]\n{text}")
        case _:
            return Note(f"[Result of a tool of the program that asks:]\n{text}")


def _author(message: SentTurn) -> str:
    name = message.name or ""
    if len(name) > 64 or not name.isprintable():
        raise ApiError(400, "bad_request", "A name must be of at most 64 letters that can be printed.")
    return name


def _called(call: dict[str, Any]) -> str:
    function: Any = call.get("function")
    if not isinstance(function, dict):
        return "a tool"
    return f"{function.get('name', 'a tool')} {function.get('arguments', '')}"  # pyright: ignore[reportUnknownMemberType]


def _said(message: SentTurn) -> tuple[str, list[Attachment]]:
    content = message.content
    if content is None or isinstance(content, str):
        return content or "", []
    texts: list[str] = []
    attachments: list[Attachment] = []
    for part in content:
        match part.type:
            case "text" | "input_text":
                texts.append(part.text)
            case "refusal":
                texts.append(part.refusal)
            case "image_url":
                attachments.append(from_data_url(_url(part.image_url, "url")))
            case "file":
                attachments.append(from_data_url(_url(part.file, "file_data"), _url(part.file, "filename", "")))
            case other:
                raise ApiError(400, "bad_request", f"A part of type {other[:40]!r} can't be taken.")
    return "\n".join(texts), attachments


def _url(part: dict[str, Any] | str | None, key: str, usual: str | None = None) -> str:
    if isinstance(part, str):
        return part
    value = part.get(key, usual) if part else usual
    if not isinstance(value, str):
        raise ApiError(400, "bad_request", f"A part lacks its {key}.")
    return value


def finish_reason(outcome: Outcome) -> str:
    """Return why a reply ended, in OpenAI's words."""
    return "length" if isinstance(outcome, LimitReached) else "stop"


def failure(outcome: Outcome) -> tuple[str, str] | None:
    """Return the code and words of a turn that failed; None for one that did not."""
    return (outcome.error.code, outcome.error.message) if isinstance(outcome, Failed) else None


def usage_words(usage: Usage) -> dict[str, Any]:
    """Return the tokens, as OpenAI counts them."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
