"""The private parts of Textual that the driver uses work as it expects."""

import time
from collections.abc import Iterable

from textual import constants, events
from textual._xterm_parser import XTermParser
from textual.message import Message

CHANGED = "textual._xterm_parser changed: adapt surfaces/terminal/driver.py, then raise the bound in pyproject.toml"


def keys(messages: Iterable[Message]) -> list[str]:
    return [message.key for message in messages if isinstance(message, events.Key)]


def test_the_private_key_parser_of_textual_is_the_one_that_was_tested() -> None:
    parser = XTermParser(False)
    assert keys(parser.feed("a\x1b[A\x03")) == ["a", "up", "ctrl+c"], CHANGED
    assert keys(parser.feed("\x1b")) == [], CHANGED
    time.sleep(constants.ESCAPE_DELAY + 0.005)  # the parser's own clock
    assert keys(parser.tick()) == ["escape"], CHANGED
