"""The words that stop, as people type and say them."""

import pytest

from hark.app.slash.stop_words import STOP_WORDS, StopWords


@pytest.mark.parametrize("text", ["stop", "Stop.", " STOP!! ", "Stop, please.", "Stop. Please.", "Hör auf!", "停止。"])
def test_a_whole_message_stops(text: str) -> None:
    assert StopWords(STOP_WORDS).fits(text)


@pytest.mark.parametrize("text", ["", "...", "stop the server", "don't stop", "Stop. And list the files.", "stops"])
def test_any_other_message_does_not(text: str) -> None:
    assert not StopWords(STOP_WORDS).fits(text)
