"""The private parts of Textual that the terminal driver uses behave as expected."""

import time
from collections.abc import Iterable

from textual import constants, events
from textual._xterm_parser import XTermParser
from textual.message import Message

CHANGED = "textual._xterm_parser changed: adapt surfaces/terminal/driver.py, then raise the bound in pyproject.toml"


def key_names(messages: Iterable[Message]) -> list[str]:
    return [message.key for message in messages if isinstance(message, events.Key)]


def test_textuals_internal_parser_recognizes_keys_and_a_lone_escape() -> None:
    parser = XTermParser(False)
    assert key_names(parser.feed("a\x1b[A\x03")) == ["a", "up", "ctrl+c"], CHANGED
    assert key_names(parser.feed("\x1b")) == [], CHANGED
    time.sleep(constants.ESCAPE_DELAY + 0.005)  # the parser uses its own clock
    assert key_names(parser.tick()) == ["escape"], CHANGED
