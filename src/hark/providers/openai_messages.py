"""A request in the words of OpenAI's chat completions."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from hark.protocol.messages import AssistantMessage, Attachment, Call, CallResult, Message, Note, UserMessage
from hark.protocol.provider import Request
from hark.protocol.tool import ToolSpec
from hark.providers.endpoint import Endpoint

Wire = dict[str, Any]
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
MAX_NAME = 64


def encode_request(request: Request, endpoint: Endpoint) -> bytes:
    """Return the body of a request. What can't be said in JSON, half a surrogate pair, is replaced."""
    body: Wire = {"model": endpoint.model, "messages": list(_messages(request))}
    if request.tools:
        body["tools"] = [_tool(spec) for spec in request.tools]
    if request.max_tokens is not None:
        # OpenAI's own newer models refuse the old name, most other servers don't know the new one.
        is_openai = "//api.openai.com/" in endpoint.base_url
        body["max_completion_tokens" if is_openai else "max_tokens"] = request.max_tokens
    body["stream"] = endpoint.stream
    if endpoint.stream:
        body["stream_options"] = {"include_usage": True}
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(_without_surrogates(body))


def _messages(request: Request) -> Iterator[Wire]:
    if request.system:
        yield {"role": "system", "content": request.system}
    for message in request.messages:
        wire = _message(message)
        if wire is not None:
            yield wire


def _message(message: Message) -> Wire | None:
    match message:
        case UserMessage():
            return _user(message)
        case Note(text):
            return {"role": "user", "content": text}
        case AssistantMessage():
            return _assistant(message)
        case CallResult():
            return {"role": "tool", "tool_call_id": message.call, "content": message.text}


def _user(message: UserMessage) -> Wire:
    text = "\n".join([message.text, *(_mention(file) for file in message.attachments if not _is_picture(file))])
    pictures = [_picture(file) for file in message.attachments if _is_picture(file)]
    wire: Wire = {"role": "user", "content": text}
    if pictures:
        wire["content"] = [{"type": "text", "text": text}, *pictures] if text else pictures
    if message.author:
        wire["name"] = _NOT_IN_NAMES.sub("_", message.author)[:MAX_NAME]
    return wire


def _is_picture(file: Attachment) -> bool:
    return bool(file.data) and file.media_type.startswith("image/")


def _picture(file: Attachment) -> Wire:
    return {"type": "image_url", "image_url": {"url": f"data:{file.media_type};base64,{file.data}"}}


def _mention(file: Attachment) -> str:
    place = f" at {file.path}" if file.path else ""
    return f"[attached: {file.name or 'a file'} ({file.media_type}){place}]"


def _assistant(message: AssistantMessage) -> Wire | None:
    if not message.text and not message.calls:
        return None
    wire: Wire = {"role": "assistant", "content": message.text or None}
    if message.calls:
        wire["tool_calls"] = [_call(call) for call in message.calls]
    return wire


def _call(call: Call) -> Wire:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _tool(spec: ToolSpec) -> Wire:
    function = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return {"type": "function", "function": function}


def _without_surrogates(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_without_surrogates(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
