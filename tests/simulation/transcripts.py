"""Whether a model's API would take a request: the transcript's own rule, and the vendor's on the wire."""

import json

from hark.protocol.messages import AssistantMessage, CallResult
from hark.protocol.provider import Request
from hark.providers.endpoint import Endpoint
from hark.providers.openai.chat import encode_request
from tests.fakes.models.history_rules import check_openai_chat

ENDPOINT = Endpoint("http://simulated/v1", "simulated")


def complaint(request: Request) -> str:
    """Return what is wrong with a request, or nothing."""
    try:
        check_openai_chat(json.loads(encode_request(request, ENDPOINT)))
    except AssertionError as error:
        return str(error)
    return _complaint(request)


def _complaint(request: Request) -> str:
    used: set[str] = set()
    open_calls: list[str] = []
    for place, message in enumerate(request.messages):
        if isinstance(message, CallResult):
            if message.call not in open_calls:
                return f"message {place} is a result for {message.call}, which no open call has"
            open_calls.remove(message.call)
            continue
        if open_calls:
            return f"calls {open_calls} have no result before message {place}"
        if isinstance(message, AssistantMessage):
            if not (message.text or message.calls):
                return f"message {place} is an assistant message that says nothing"
            for call in message.calls:
                if not call.id or call.id in used:
                    return f"message {place} has the call id {call.id!r}, which is empty or used"
                used.add(call.id)
                open_calls.append(call.id)
    return f"calls {open_calls} have no result at the end" if open_calls else ""
