"""`python -m docs.make_keys`: writes docs/keys.md from the tables in the code."""

from pathlib import Path

from hark.app.slash.table import TERMINAL_COMMANDS
from hark.surfaces.terminal.keys import FIXED, MEANINGS, QUEUE_KEYS, Keys, shown

PAGE = Path(__file__).parent / "keys.md"

HEAD = """\
# The keys of the terminal app

<!-- Made by `python -m docs.make_keys` from the tables in the code. -->

The input line is always live: what you type while the agent works is heard at once. Enter sends with your default
delivery (`[delivery] default`, or `/busy`); a list of completions is walked with the arrow keys, and Tab or Enter takes
one.

| key | does | setting |
|---|---|---|
| Enter | send | |
"""

QUEUE = """
## In the list of waiting messages

| key | does |
|---|---|
"""

REST = """
## Questions

| key | does |
|---|---|
| `y` `s` `a` `n`, or a digit | answer an approval: yes, for this session, always, no |
| a digit, or words and Enter | answer any other question |
| Esc | stop the turn: the question is withdrawn |

A single key is an answer only when the line is empty and the question has been on the screen for half a second; words
are one only when the question was there before their first letter. Everything else is a message like any other.

## In a list to choose from

| key | does |
|---|---|
| Enter | go back to before this message, open this session or child |
| `f` | rewind: take the file changes back as well |
| `s` | children: stop this one alone |
| Esc | leave it |

## Commands that only the terminal has

| command | does |
|---|---|
| `/voice` | talk instead of typing: once more sends it |
"""

TAIL = """
## Changing keys

In `config.toml`, with [Textual's names](https://textual.textualize.io/guide/input/#key):

```toml
[terminal]
theme = "nord"                 # without it: the terminal's own colours

[terminal.keys]
steer = "ctrl+t"
stop = "f9"
```

`NO_COLOR` is honoured. A click on output, thinking or a long message opens or folds it; with Shift, the mouse selects
text as in any terminal. Esc is taken for itself after 25 ms; over a slow line set `ESCDELAY` to more.
"""


def page() -> str:
    """Return the page."""
    usual = Keys().acts() | {"newline": Keys().newline} | {act: key for key, act in FIXED.items()}
    rows = [
        f"| {shown(usual[act])} | {meaning} | {f'`{act}`' if act not in FIXED.values() else ''} |\n"
        for act, meaning in MEANINGS.items()
    ]
    queue = [
        f"| {shown(key) if len(key) > 1 else f'`{key}`'} | {meaning} |\n" for key, (_, meaning) in QUEUE_KEYS.items()
    ]
    own = [f"| `/{line.name}{f' {line.takes}' if line.takes else ''}` | {line.help} |\n" for line in TERMINAL_COMMANDS]
    return "".join([HEAD, *rows, QUEUE, *queue, REST, *own, TAIL])


if __name__ == "__main__":
    PAGE.write_text(page())
