"""A spoken reply that was all there when its sound was cut: the model is told how far it was heard."""

from hark.engine.session.proxy import SessionProxy
from hark.protocol.commands import Remark, Shown
from hark.protocol.messages import AssistantMessage

LAST_CHARACTERS = 80


async def note_heard(door: SessionProxy, shown: Shown, name: str) -> None:
    """Remark how much of the last reply its person heard; a reply that still runs is cut by the interrupt instead."""
    await door.known()
    state = door.state
    if state.turn is not None or not state.transcript.turns or state.transcript.turns[-1] != shown.turn:
        return
    last = state.transcript.messages[-1]
    if not isinstance(last, AssistantMessage) or shown.characters >= len(last.text.rstrip()):
        return
    heard = last.text[: shown.characters].strip()[-LAST_CHARACTERS:]
    how = f'stopped listening after the words "{heard}"' if heard else "heard nothing of it"
    await door.change(Remark(name, f"Your last reply was being spoken aloud, and the person {how}."))
