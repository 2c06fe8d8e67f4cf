"""Checks a request against the transcript rules and the Chat Completions API."""

import json

from hark.protocol.messages import AssistantMessage, CallResult
from hark.protocol.provider import Request
from hark.providers.endpoint import Endpoint
from hark.providers.openai.chat import encode_request
from tests.fakes.models.history_rules import check_openai_chat

ENDPOINT = Endpoint("http://simulated/v1", "simulated")


def find_request_problem(request: Request) -> str:
    """Return the reason why a request is invalid, or "" if it is valid."""
    try:
        check_openai_chat(json.loads(encode_request(request, ENDPOINT)))
    except AssertionError as error:
        return str(error)
    return _find_transcript_problem(request)


def _find_transcript_problem(request: Request) -> str:
    used: set[str] = set()
    open_calls: list[str] = []
    for index, message in enumerate(request.messages):
        if isinstance(message, CallResult):
            if message.call not in open_calls:
                return f"message {index} is a result for {message.call}, which no open call has"
            open_calls.remove(message.call)
            continue
        if open_calls:
            return f"calls {open_calls} have no result before message {index}"
        if isinstance(message, AssistantMessage):
            if not (message.text or message.calls):
                return f"message {index} is an assistant message without content"
            for call in message.calls:
                if not call.id or call.id in used:
                    return f"message {index} has the call id {call.id!r}, which is empty or used"
                used.add(call.id)
                open_calls.append(call.id)
    return f"calls {open_calls} have no result at the end" if open_calls else ""
