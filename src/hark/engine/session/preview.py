"""A session's state read from the store, without loading the session."""

from hark.engine.session.decide import on_backlog
from hark.engine.session.decide_changes import on_queue_command
from hark.engine.session.decision_context import DecisionContext
from hark.engine.session.state import SessionState
from hark.protocol.commands import Edit, Move, Say, Withdraw
from hark.protocol.store import Store


async def read_state(store: Store, session: str) -> SessionState:
    """Return a session's state according to its journal.

    Raises:
        StoreError: The journal can't be read.
    """
    state = SessionState()
    for record in await store.journal.read(session):
        state.apply(record)
    return state


async def preview_state(store: Store, session: str) -> SessionState:
    """Return the state that the next owner will have after it has read the inbox.

    Raises:
        StoreError: The journal or the inbox can't be read.
    """
    state = await read_state(store, session)
    for entry in await store.inbox.entries_after(session, state.cursor):
        context = DecisionContext(0.0, session, entry.seq)
        match entry.command:
            case Say() as say:
                for record in on_backlog(state, say, context):
                    state.apply(record)
            case Edit() | Move() | Withdraw() as command:
                state.apply(on_queue_command(state, command, context))
            case _:
                pass
    return state
