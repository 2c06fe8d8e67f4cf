"""A session's state, read from its journal without opening the session."""

from hark.engine.session.state import SessionState
from hark.protocol.store import Journal


async def load_state(journal: Journal, session: str) -> SessionState:
    """Return the state that the session's records add up to.

    Raises:
        StoreError: They can't be read.
    """
    state = SessionState()
    for record in await journal.read(session):
        state.apply(record)
    return state
