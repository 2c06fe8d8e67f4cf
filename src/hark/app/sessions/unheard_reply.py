"""Adds a note for the model about the part of a spoken reply that the user missed after stopping it."""

from hark.engine.session.proxy import SessionProxy
from hark.protocol.commands import AddNote, ShownText
from hark.protocol.messages import AssistantMessage

LAST_CHARACTERS = 80


async def note_unheard_reply(proxy: SessionProxy, shown: ShownText, note_id: str) -> None:
    """Add a note about where in the last spoken reply the user stopped listening. Does nothing during a turn."""
    await proxy.wait_until_loaded()
    state = proxy.state
    if state.turn is not None or not state.transcript.turns or state.transcript.turns[-1] != shown.turn:
        return
    last = state.transcript.messages[-1]
    if not isinstance(last, AssistantMessage) or shown.characters >= len(last.text.rstrip()):
        return
    heard = last.text[: shown.characters].strip()[-LAST_CHARACTERS:]
    reaction = f'stopped listening after "{heard}"' if heard else "missed all of it"
    await proxy.change(AddNote(note_id, f"Your last reply was being spoken aloud, and the user {reaction}."))
