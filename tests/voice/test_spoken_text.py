"""Markdown replies are converted to sentences for speech."""

import time

from hark.voice.program_speaker import CODE_TEXT, MAX_SENTENCE_CHARACTERS, split_sentences
from tests.waiting import at_most


def spoken_sentences(markdown: str) -> list[str]:
    return list(split_sentences(markdown))


def test_text_is_split_into_sentences() -> None:
    assert spoken_sentences("Done. All tests pass!\nWhat next? It is 3.5 s.") == [
        "Done.",
        "All tests pass!",
        "What next?",
        "It is 3.5 s.",
    ]


def test_markdown_markers_are_not_spoken() -> None:
    assert spoken_sentences("# The *plan*\n- **bold** and _slanted_, `code` and snake_case_name\n> ~~old~~") == [
        "The plan",
        "bold and slanted, code and snake_case_name",
        "old",
    ]
    assert spoken_sentences(
        "See [the log](https://x.org/a?b=c) or https://docs.x.org/very/long. ✅ <b>Bye</b> ![cat](c.png)"
    ) == ["See the log or docs.x.org Bye cat"]
    assert spoken_sentences("| a | b |\n|---|---|\n| 1 | 2 |") == [", a , b ,", ", 1 , 2 ,"]


def test_code_is_replaced_by_a_short_text_even_when_its_fence_is_not_closed() -> None:
    assert spoken_sentences("Look:\n```python\nimport os. No!\n```\nThat is it.") == ["Look:", CODE_TEXT, "That is it."]
    assert spoken_sentences("Look:\n```\nimport os") == ["Look:", CODE_TEXT]


def test_text_without_words_yields_no_sentences() -> None:
    assert spoken_sentences("") == spoken_sentences("---\n***\n🎉") == []


def test_long_sentence_is_split_between_words() -> None:
    pieces = spoken_sentences("word " * 1000)
    assert all(len(piece) <= MAX_SENTENCE_CHARACTERS and not piece.startswith("ord") for piece in pieces)
    assert " ".join(pieces).split() == ["word"] * 1000
    assert spoken_sentences("x" * 1000) == ["x" * 400, "x" * 400, "x" * 200]


def test_hostile_markdown_is_processed_quickly() -> None:
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
        spoken_sentences(text)
    assert time.monotonic() - begin < at_most(10)


def test_address_with_parentheses_is_not_spoken() -> None:
    assert spoken_sentences("See [Foo](https://en.wikipedia.org/wiki/Foo_(bar)) and ![a](b(c)d).") == ["See Foo and a."]
