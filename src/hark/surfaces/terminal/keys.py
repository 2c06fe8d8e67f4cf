"""The keys of the terminal app, and what they are called."""

from msgspec import Struct


class Keys(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[terminal.keys]`: a key for each act, in Textual's names (`ctrl+s`, `tab`, `f2`); Enter always sends."""

    queue: str = "tab"
    steer: str = "ctrl+s"
    newline: str = "ctrl+j"
    stop: str = "escape"
    leave: str = "ctrl+c"
    editor: str = "ctrl+g"
    unfold: str = "ctrl+o"
    waiting: str = "f2"
    children: str = "f3"
    rewind: str = "f4"
    talk: str = "ctrl+t"


FIXED = {"ctrl+d": "end", "pageup": "page_up", "pagedown": "page_down"}

# What each act does, in the order in which people need to know it.
MEANINGS = {
    "queue": "send it when the running turn is over (completes a word when a list is shown)",
    "steer": "send it into the running turn, at its next step",
    "stop": "stop the running turn; twice within 0.6 s: go back to an earlier message",
    "leave": "clear the line, else stop the turn, else (twice within 2 s) leave",
    "newline": "a new line (Shift+Enter, Alt+Enter, and Enter behind a \\ do the same)",
    "editor": "edit the text in `$VISUAL` or `$EDITOR`",
    "unfold": "open or fold all thinking and output (a click opens one)",
    "waiting": "into the list of waiting messages",
    "children": "the tree of child agents: open one, stop one, go back",
    "rewind": "go back to an earlier message, with or without its file changes",
    "talk": "talk: once begins to record, once more sends what you said, Esc drops it ([voice](voice.md))",
    "end": "leave, when the line is empty",
    "page_up": "scroll up",
    "page_down": "scroll down",
}

QUEUE_KEYS = {
    "e": ("edit", "edit it: Enter puts it back changed, Esc leaves it as it was"),
    "d": ("withdraw", "withdraw it (Delete does the same)"),
    "K": ("up", "move it up"),
    "J": ("down", "move it down"),
    "enter": ("now", "send it now: it interrupts what runs"),
    "escape": ("leave", "back to the input line"),
}


def shown(key: str) -> str:
    """Return a key as people write it."""
    names = {"escape": "Esc", "tab": "Tab", "enter": "Enter", "pageup": "PgUp", "pagedown": "PgDn"}
    return names.get(key, "+".join(part.capitalize() if len(part) > 1 else part.upper() for part in key.split("+")))
