"""The key bindings of the terminal app, with their actions and descriptions."""

from msgspec import Struct


class Keys(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The settings of `[terminal.keys]`: the key of each action, named as in Textual (`ctrl+s`). Enter always sends."""

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
    resume: str = "f5"


FIXED_KEYS = {"shift+tab": "answer", "ctrl+d": "end", "pageup": "page_up", "pagedown": "page_down"}

# Descriptions of the actions, the most important first.
KEY_DESCRIPTIONS = {
    "queue": "queue the message until the running turn ends (while completions are listed: complete the word)",
    "steer": "steer: add the message to the running turn at its next step",
    "stop": "stop the running turn, or first an open side question; twice within 0.6 s: rewind to an earlier message",
    "leave": "clear the input line; if it is empty, stop the turn; when idle, press twice within 2 s to quit",
    "newline": "insert a line break (also Shift+Enter, Alt+Enter, or Enter after a \\)",
    "editor": "edit the text in `$VISUAL` or `$EDITOR`",
    "unfold": "expand or collapse all thinking and output (a click expands one block)",
    "waiting": "go to the list of queued messages",
    "children": "show the child agents: open or stop one, or return to the parent",
    "rewind": "rewind to an earlier message, with or without its file changes",
    "resume": "continue the last interrupted turn, or undo a stop (`/continue`)",
    "talk": "record a voice message; press again to send it, Esc to discard it ([voice](voice.md))",
    "answer": "answer the open question in your own words instead of with a choice; again: undo",
    "end": "quit, when the input line is empty",
    "page_up": "scroll up",
    "page_down": "scroll down",
}

QUEUE_KEYS = {
    "e": ("edit", "edit the message: Enter saves, Esc discards the changes"),
    "d": ("withdraw", "withdraw the message (also Delete)"),
    "K": ("up", "move the message up"),
    "J": ("down", "move the message down"),
    "enter": ("now", "send the message now, interrupting the running turn"),
    "escape": ("leave", "return to the input line"),
}


def key_label(key: str) -> str:
    """Return a key's name as shown to users, such as `Ctrl+S` for `ctrl+s`."""
    names = {"escape": "Esc", "tab": "Tab", "enter": "Enter", "pageup": "PgUp", "pagedown": "PgDn"}
    return names.get(key, "+".join(part.capitalize() if len(part) > 1 else part.upper() for part in key.split("+")))
