"""Checks that the inbox has every acknowledged message exactly once."""

from collections import Counter
from collections.abc import Sequence

from hark.protocol.commands import Say
from hark.protocol.store import Store
from tests.power_cuts.scenarios.scenario import Action, CheckResult


async def read_messages(store: Store, session: str) -> list[Say]:
    """Return the accepted messages of a session."""
    return [entry.command for entry in await store.inbox.entries_after(session, 0) if isinstance(entry.command, Say)]


async def check_messages(store: Store, session: str, actions: Sequence[Action], result: CheckResult) -> None:
    """Report messages that were acknowledged by these actions and are lost or duplicated."""
    counts = Counter(message.id for message in await read_messages(store, session))
    for action in actions:
        name = action.details["message"]
        if counts[name] != 1:
            result.add("a message is lost" if not counts[name] else "a message is duplicated", name)
