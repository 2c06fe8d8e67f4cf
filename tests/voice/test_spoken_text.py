"""What of a written reply is spoken."""

import time

from hark.voice.program_speaker import CODE, MOST_CHARACTERS, sentences
from tests.waiting import at_most


def said(markdown: str) -> list[str]:
    return list(sentences(markdown))


def test_sentences_come_one_at_a_time() -> None:
    assert said("Done. All tests pass!\nWhat next? It is 3.5 s.") == [
        "Done.",
        "All tests pass!",
        "What next?",
        "It is 3.5 s.",
    ]


def test_marks_are_not_spoken() -> None:
    assert said("# The *plan*\n- **bold** and _slanted_, `code` and snake_case_name\n> ~~old~~") == [
        "The plan",
        "bold and slanted, code and snake_case_name",
        "old",
    ]
    assert said("See [the log](https://x.org/a?b=c) or https://docs.x.org/very/long. ✅ <b>Bye</b> ![cat](c.png)") == [
        "See the log or docs.x.org Bye cat"
    ]
    assert said("| a | b |\n|---|---|\n| 1 | 2 |") == [", a , b ,", ", 1 , 2 ,"]


def test_code_is_named_and_left_out_even_when_it_never_ends() -> None:
    assert said("Look:\n```python\nimport os. No!\n```\nThat is it.") == ["Look:", CODE, "That is it."]
    assert said("Look:\n```\nimport os") == ["Look:", CODE]


def test_nothing_to_say_is_nothing() -> None:
    assert said("") == said("---\n***\n🎉") == []


def test_a_sentence_without_end_is_cut_between_words() -> None:
    pieces = said("word " * 1000)
    assert all(len(piece) <= MOST_CHARACTERS and not piece.startswith("ord") for piece in pieces)
    assert " ".join(pieces).split() == ["word"] * 1000
    assert said("x" * 1000) == ["x" * 400, "x" * 400, "x" * 200]


def test_hostile_text_takes_no_time() -> None:
    begin = time.monotonic()
    for text in (
        "*" * 50_000,
        "[" * 50_000,
        "`" * 50_000,
        "_a" * 25_000,
        "<a" * 25_000,
        "```\n" * 12_500,
        "- " * 25_000,
    ):
        said(text)
    assert time.monotonic() - begin < at_most(10)
