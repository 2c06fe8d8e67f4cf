"""The words at the edges of the screen: which keys do what now, and where one is."""

from typing import TYPE_CHECKING

from hark.protocol.names import is_child, split_child
from hark.surfaces.terminal.keys import shown
from hark.text.safe_text import safe_line

if TYPE_CHECKING:
    from hark.surfaces.terminal.app import TerminalApp


def footer_words(app: "TerminalApp") -> str:
    """Return the keys that matter now, the session and its model."""
    keys = app.place.keys
    if app.is_editing:
        words = f"Enter puts it back into the queue · {shown(keys.stop)} leaves it as it was"
    elif is_child(app.session.id):
        words = f"Enter steers this child · {shown(keys.stop)} stops it alone · {shown(keys.children)} back"
    elif app.progress.turn:
        words = f"Enter sends · {shown(keys.queue)} queues · {shown(keys.steer)} steers · {shown(keys.stop)} stops"
    else:
        leave = f"{shown(keys.leave)} twice leaves"
        words = f"Enter sends · /help · @file · {shown(keys.rewind)} goes back · {leave}"
    return f"{words} · {safe_line(app.session.id, 60)} · {safe_line(app.agent.model(app.session.id), 60)}"


def where_words(session: str) -> str:
    """Return where one is and how to get back; "" in a session that has no parent."""
    parent, call = split_child(session)
    return f"child {call} of {parent}" if parent else ""
