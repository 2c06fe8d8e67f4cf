"""A session's state read from the store, without loading the session."""

from hark.engine.session.decide import Moment, on_backlog, on_queue_command
from hark.engine.session.state import SessionState
from hark.protocol.commands import Edit, Move, Say, Withdraw
from hark.protocol.store import Store


async def saved_state(store: Store, session: str) -> SessionState:
    """Return the state that the journal describes.

    Raises:
        StoreError: It can't be read.
    """
    state = SessionState()
    for record in await store.journal.read(session):
        state.apply(record)
    return state


async def preview(store: Store, session: str) -> SessionState:
    """Return the state as the next owner will find it once it has read the inbox.

    Raises:
        StoreError: It can't be read.
    """
    state = await saved_state(store, session)
    for entry in await store.inbox.after(session, state.cursor):
        moment = Moment(0.0, session, entry.seq)
        match entry.command:
            case Say() as say:
                for record in on_backlog(state, say, moment):
                    state.apply(record)
            case Edit() | Move() | Withdraw() as command:
                state.apply(on_queue_command(state, command, moment))
            case _:
                pass
    return state
