"""How a prompt ended, in the protocol's words."""

from acp import RequestError
from acp.schema import PromptResponse, StopReason, Usage

from hark.protocol.events import TurnEnd
from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached

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
