"""Hark: an AI agent that listens while it works."""

from hark.version import __version__ as __version__

TYPE_CHECKING = False  # typing itself would cost as much as all the rest of `hark --version`

if TYPE_CHECKING:
    from hark.app.agent import Agent
    from hark.app.build import open_agent
    from hark.app.sessions.handle import SessionHandle
    from hark.app.settings import SettingsError
    from hark.protocol import events
    from hark.protocol.commands import Delivery
    from hark.protocol.messages import Attachment
    from hark.protocol.outcomes import Completed, Failed, Interrupted, LimitReached
    from hark.protocol.receipts import Receipt, Refusal, Settled
    from hark.protocol.store import StoreError
    from hark.providers.scripted import ScriptedProvider
    from hark.tools.function import tool

    open = open_agent  # noqa: A001

__all__ = [
    "Agent",
    "Attachment",
    "Completed",
    "Delivery",
    "Failed",
    "Interrupted",
    "LimitReached",
    "Receipt",
    "Refusal",
    "ScriptedProvider",
    "SessionHandle",
    "SettingsError",
    "Settled",
    "StoreError",
    "events",
    "open",
    "tool",
]

# Names are loaded when they are first used: `import hark` and `hark --version` must cost next to nothing.
_PLACES = {
    "Agent": "hark.app.agent",
    "Attachment": "hark.protocol.messages",
    "Completed": "hark.protocol.outcomes",
    "Delivery": "hark.protocol.commands",
    "Failed": "hark.protocol.outcomes",
    "Interrupted": "hark.protocol.outcomes",
    "LimitReached": "hark.protocol.outcomes",
    "Receipt": "hark.protocol.receipts",
    "Refusal": "hark.protocol.receipts",
    "ScriptedProvider": "hark.providers.scripted",
    "SessionHandle": "hark.app.sessions.handle",
    "Settled": "hark.protocol.receipts",
    "SettingsError": "hark.app.settings",
    "StoreError": "hark.protocol.store",
    "events": "hark.protocol.events:",
    "open": "hark.app.build:open_agent",
    "tool": "hark.tools.function",
}


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'hark' has no attribute {name!r}")
    from importlib import import_module

    module, colon, attribute = place.partition(":")
    found = import_module(module)
    value = globals()[name] = found if colon and not attribute else vars(found)[attribute or name]
    return value
