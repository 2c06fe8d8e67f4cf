"""Stop words as users type and speak them."""

import pytest

from hark.app.slash.stop_words import STOP_WORDS, WordList


@pytest.mark.parametrize("text", ["stop", "Stop.", " STOP!! ", "Stop, please.", "Stop. Please.", "Hör auf!", "停止。"])
def test_a_message_that_consists_only_of_a_stop_word_stops_the_turn(text: str) -> None:
    assert WordList(STOP_WORDS).matches(text)


@pytest.mark.parametrize("text", ["", "...", "stop the server", "don't stop", "Stop. And list the files.", "stops"])
def test_a_message_with_other_text_besides_a_stop_word_does_not_stop_the_turn(text: str) -> None:
    assert not WordList(STOP_WORDS).matches(text)
