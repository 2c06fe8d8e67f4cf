"""Requests and responses in the format of OpenAI's chat completions."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from hark.protocol.agent import PastMessage
from hark.protocol.messages import AssistantMessage, Attachment, Note, UserMessage
from hark.protocol.outcomes import Failed, LimitReached, Outcome, Usage
from hark.surfaces.web.api.attachments import MAX_ATTACHMENTS, attachment_from_data_url
from hark.surfaces.web.api.errors import ApiError

MAX_MESSAGES = 10_000
_LAST_MESSAGE_RULE = "The last message must have the role user."


class CompletionContentPart(Struct, frozen=True):
    """A part of a message's content: a text, refusal, image or file. Images and files are sent as data: URLs."""

    type: str
    text: str = ""
    image_url: dict[str, Any] | str | None = None
    file: dict[str, Any] | None = None
    refusal: str = ""


class CompletionMessage(Struct, frozen=True):
    """A message of the conversation."""

    role: Literal["user", "assistant", "system", "developer", "tool", "function"]
    content: str | list[CompletionContentPart] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None


class StreamOptions(Struct, frozen=True):
    """Options of a streamed response."""

    include_usage: bool = False


class CompletionRequest(Struct, frozen=True):
    """A chat completion request. Other fields, such as temperature, are ignored, because the route sets them."""

    messages: Annotated[
        list[CompletionMessage], Meta(min_length=1, max_length=MAX_MESSAGES, description=_LAST_MESSAGE_RULE)
    ]
    model: str = ""
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    tools: list[Any] | None = None
    functions: list[Any] | None = None


class CompletionPrompt(Struct, frozen=True):
    """The prompt of a request: the earlier messages and the new message."""

    past: tuple[PastMessage, ...]
    text: str
    attachments: tuple[Attachment, ...]
    author: str


def read_prompt(request: CompletionRequest) -> CompletionPrompt:
    """Return the prompt of a request.

    Raises:
        ApiError: The request needs an unsupported feature, or has no valid last message.
    """
    if (request.n or 1) != 1:
        raise ApiError(400, "unsupported_parameter", "Only one choice is supported. Set n to 1.")
    if request.tools or request.functions:
        message = "The agent uses its own tools and can't call a client's tools. Omit `tools` and `functions`."
        raise ApiError(400, "unsupported_parameter", message)
    messages = request.messages
    first_new = len(messages)
    while first_new and messages[first_new - 1].role == "user":
        first_new -= 1
    if first_new == len(messages):
        raise ApiError(400, "bad_request", "The last message must have the role user.")
    contents = [_read_content(message) for message in messages[first_new:]]
    attachments = [attachment for _, attached in contents for attachment in attached]
    text = "\n\n".join(text for text, _ in contents if text)
    if not text.strip() and not attachments:
        raise ApiError(400, "empty", "The last message is empty.")
    if len(attachments) > MAX_ATTACHMENTS:
        raise ApiError(400, "bad_attachment", f"A message can have at most {MAX_ATTACHMENTS} attachments.")
    past = tuple(_convert_past_message(number, message) for number, message in enumerate(messages[:first_new], 1))
    return CompletionPrompt(past, text, tuple(attachments), _read_author(messages[-1]))


def _convert_past_message(number: int, message: CompletionMessage) -> PastMessage:
    """Convert an earlier message. Tool calls become text, because the agent can't run the client's tools."""
    text, attachments = _read_content(message)
    match message.role:
        case "user":
            return UserMessage(f"past-{number}", text, _read_author(message), tuple(attachments))
        case "assistant":
            calls = "".join(f"\n[called {_describe_tool_call(call)}]" for call in message.tool_calls or ())
            return AssistantMessage(f"{text}{calls}".strip())
        case "system" | "developer":
            return Note(f"[Instructions from the client program:]\n{text}")
        case _:
            return Note(f"[Result of a tool of the client program:]\n{text}")


def _read_author(message: CompletionMessage) -> str:
    name = message.name or ""
    if len(name) > 64 or not name.isprintable():
        raise ApiError(400, "bad_request", "A name must have at most 64 printable characters.")
    return name


def _describe_tool_call(call: dict[str, Any]) -> str:
    function: Any = call.get("function")
    if not isinstance(function, dict):
        return "a tool"
    return f"{function.get('name', 'a tool')} {function.get('arguments', '')}"  # pyright: ignore[reportUnknownMemberType]


def _read_content(message: CompletionMessage) -> tuple[str, list[Attachment]]:
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
                attachments.append(attachment_from_data_url(_read_string(part.image_url, "url")))
            case "file":
                attachments.append(
                    attachment_from_data_url(
                        _read_string(part.file, "file_data"), _read_string(part.file, "filename", "")
                    )
                )
            case other:
                raise ApiError(400, "bad_request", f"Content parts of type {other[:40]!r} are not supported.")
    return "\n".join(texts), attachments


def _read_string(part: dict[str, Any] | str | None, key: str, default: str | None = None) -> str:
    if isinstance(part, str):
        return part
    value = part.get(key, default) if part else default
    if not isinstance(value, str):
        raise ApiError(400, "bad_request", f"A content part lacks {key}.")
    return value


def finish_reason(outcome: Outcome) -> str:
    """Return OpenAI's `finish_reason` for an outcome."""
    return "length" if isinstance(outcome, LimitReached) else "stop"


def failure_details(outcome: Outcome) -> tuple[str, str] | None:
    """Return the error code and message of a failed turn, or None for any other outcome."""
    return (outcome.error.code, outcome.error.message) if isinstance(outcome, Failed) else None


def format_usage(usage: Usage) -> dict[str, Any]:
    """Return the token usage in OpenAI's format."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
