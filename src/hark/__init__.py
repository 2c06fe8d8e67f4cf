"""Hark: an AI agent that listens while it works."""

from hark.version import __version__ as __version__

TYPE_CHECKING = False  # importing `typing` would take as long as everything else in `hark --version`

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

# Names are imported when first used, so that `import hark` and `hark --version` start quickly.
_MODULES = {
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
    module_name = _MODULES.get(name)
    if module_name is None:
        raise AttributeError(f"module 'hark' has no attribute {name!r}")
    from importlib import import_module

    module, colon, attribute = module_name.partition(":")
    imported = import_module(module)
    value = globals()[name] = imported if colon and not attribute else vars(imported)[attribute or name]
    return value
