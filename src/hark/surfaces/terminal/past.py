"""What was said before, as blocks."""

from collections.abc import Container, Sequence

from textual.widget import Widget

from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.surfaces.terminal.blocks import Called, Said, Told
from hark.surfaces.terminal.prose import Piece, Prose
from hark.surfaces.terminal.safe import safe
from hark.surfaces.terminal.words import effect_words

MOST_BLOCKS = 120


def past_blocks(messages: Sequence[Message], known: Container[str]) -> tuple[list[Widget], dict[str, Called], str]:
    """Return the last blocks of a transcript, the calls in it that still run, and the last reply.

    Messages whose id is `known` are on the screen already.
    """
    blocks: list[Widget] = []
    calls: dict[str, Called] = {}
    reply = ""

    def add(piece: Piece) -> Piece:
        blocks.append(piece)
        return piece

    for message in messages[-MOST_BLOCKS:]:
        match message:
            case UserMessage(id=name, text=text, author=author):
                if name not in known:
                    blocks.append(Said(text, author))
            case AssistantMessage(text=text):
                if text:
                    Prose(add).add(safe(text))
                    reply = text
                for call in message.calls:
                    blocks.append(called := Called(call.name, call.arguments))
                    calls[call.id] = called
            case CallResult(call=call, text=text):
                if call in calls:
                    calls.pop(call).finish(text, effect_words(message.effect, is_error=message.is_error))
            case Note(text=text):
                blocks.append(Told(text))
    if len(blocks) > MOST_BLOCKS:
        blocks = [Told("… earlier: hark sessions show"), *blocks[-MOST_BLOCKS:]]
    return blocks, calls, reply
