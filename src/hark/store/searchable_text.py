"""What of a record can be searched: what a person, the model or a tool said in a turn."""

from msgspec import Struct

from hark.protocol.messages import AssistantMessage, UserMessage
from hark.protocol.records import AnyRecord, CallEnded, Replied, Steered, TurnStarted

PERSON = "person"
HARK = "hark"
RESULT_CHARACTERS = 20_000
LOOKING_BACK = ("recall",)  # what only repeats what was said before would be found in its place


class SearchableLine(Struct, frozen=True):
    """Something that was said."""

    turn: str
    at: float
    who: str
    text: str


def lines_of(record: AnyRecord) -> list[SearchableLine]:
    """Return what a record has to be found by; most have nothing."""
    match record:
        case TurnStarted(turn=turn, messages=messages) | Steered(turn=turn, messages=messages):
            lines = [SearchableLine(turn, record.at, message.author or PERSON, _asked(message)) for message in messages]
        case Replied(turn=turn, message=message):
            lines = [SearchableLine(turn, record.at, HARK, _replied(message))]
        case CallEnded(turn=turn, result=result) if result.name not in LOOKING_BACK:
            lines = [SearchableLine(turn, record.at, result.name, result.text[:RESULT_CHARACTERS])]
        case _:
            lines = []
    return [line for line in lines if line.text.strip()]


def _asked(message: UserMessage) -> str:
    return "\n".join([message.text, *(attachment.name for attachment in message.attachments if attachment.name)])


def _replied(message: AssistantMessage) -> str:
    calls = (f"{call.name} {call.arguments}" for call in message.calls if call.name not in LOOKING_BACK)
    return "\n".join([message.text, *calls]) if message.calls else message.text
