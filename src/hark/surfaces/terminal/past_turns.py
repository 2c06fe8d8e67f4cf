"""What was said before, as blocks."""

from collections.abc import Mapping, Sequence

from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.surfaces.terminal.widgets.blocks import Block, Called, Told, UserBlock
from hark.surfaces.terminal.widgets.prose import Prose, ProseBlock
from hark.text.safe_text import safe
from hark.text.status_text import effect_words

MOST_BLOCKS = 120


def past_blocks(
    messages: Sequence[Message], known: Mapping[str, UserBlock]
) -> tuple[list[Block], dict[str, Called], str]:
    """Return the last blocks of a transcript, the calls in it that still run, and the last reply.

    Messages whose id is `known` have their block already.
    """
    blocks: list[Block] = []
    calls: dict[str, Called] = {}
    reply = ""

    def show(piece: ProseBlock) -> None:
        if piece not in blocks[-1:]:
            blocks.append(piece)

    for message in messages[-MOST_BLOCKS:]:
        match message:
            case UserMessage(id=name, text=text, author=author):
                blocks.append(known.get(name) or UserBlock(text, author))
            case AssistantMessage(text=text):
                if text:
                    prose = Prose(show)
                    prose.add(safe(text))
                    prose.end()
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
