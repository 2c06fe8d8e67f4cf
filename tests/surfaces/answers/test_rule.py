"""The rule for answers without a surface: every text at every kind of question, directed or not, private or not."""

import pytest

from hark.app.slash.meaning import meaning_of
from hark.app.slash.stop_words import STOP_WORDS, WordList
from hark.protocol.events import QuestionAsked
from hark.protocol.meaning import AnswerMeaning, CommandMeaning, InvalidAnswerMeaning, Meaning, StopMeaning
from hark.protocol.tool import QuestionKind
from hark.text.answers import QUESTION_CLOSED, find_answer, find_choice, read_answer
from tests.surfaces.answers.answer_cases import (
    APPROVAL,
    APPROVAL_CHOICES,
    CASES,
    CHOICES,
    COLOURS,
    KINDS,
    OPEN,
    Result,
    expected_result,
)

KIND_CHOICES: dict[str, tuple[str, ...]] = {APPROVAL: APPROVAL_CHOICES, CHOICES: COLOURS, OPEN: ()}


def question(choices: tuple[str, ...], name: str = "q", *, is_open_ended: bool = False) -> QuestionAsked:
    kind = QuestionKind.APPROVAL if choices == APPROVAL_CHOICES else QuestionKind.QUESTION
    return QuestionAsked("s", "s.t1", 1, 0.0, name, "Which?", choices, kind, is_open_ended=is_open_ended)


def result_of(meaning: Meaning, kind: str) -> Result:
    match meaning:
        case AnswerMeaning(text=text):
            return Result("answer", "allowed" if kind == APPROVAL and text in APPROVAL_CHOICES[:3] else text)
        case InvalidAnswerMeaning(reason=reason):
            assert reason == f"Choose a number from 1 to {len(KIND_CHOICES[kind])}."
            return Result("refused")
        case StopMeaning():
            return Result("stop")
        case CommandMeaning():
            return Result("command")
        case _:
            return Result("message", meaning.text.strip())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_directed", [True, False], ids=["directed", "undirected"])
@pytest.mark.parametrize("is_private", [True, False], ids=["private", "group"])
def test_every_text_has_the_effect_of_the_rule(kind: str, is_directed: bool, is_private: bool) -> None:
    asked, is_stop_word = question(KIND_CHOICES[kind]), WordList(STOP_WORDS).matches
    for case in CASES:
        if case.text.startswith(("/approve", "/deny")):
            continue  # these commands answer an approval
        meaning = meaning_of(
            case.text,
            is_stop_word,
            lambda text: read_answer(text, asked, is_directed=is_directed, is_private=is_private),
        )
        expected = expected_result(case, kind, is_directed=is_directed, is_private=is_private)
        assert result_of(meaning, kind) == expected, case.text


def test_the_table_has_at_least_fifty_different_texts() -> None:
    assert len({case.text for case in CASES}) == len(CASES) >= 50


@pytest.mark.parametrize("text", ["", " ", "\n", "\t \n"])
@pytest.mark.parametrize("choices", [APPROVAL_CHOICES, COLOURS, ()])
def test_blank_text_answers_no_question(text: str, choices: tuple[str, ...]) -> None:
    assert read_answer(text, question(choices), is_directed=True, is_private=True) is None


@pytest.mark.parametrize(
    ("text", "choices", "choice"),
    [
        ("10", ("5", "10"), "10"),  # the whole text is preferred to the number
        ("2", ("10", "20"), "20"),
        ("1", ("2", "1"), "1"),
        ("s", ("small", "session"), None),  # two choices have this letter
        ("small.", ("small", "session"), "small"),
        ("Cafe\u0301", ("Café", "Tee"), "Café"),
        ("STRASSE", ("Straße", "Weg"), "Straße"),
        ("はい", ("はい", "いいえ"), "はい"),
        ("yes", ("Yes.", "No."), "Yes."),
        ("", ("", "x"), None),
        ("keep it", ("Keep it!", "Drop it"), "Keep it!"),
    ],
)
def test_choice_is_found_by_number_letter_or_whole_text(
    text: str, choices: tuple[str, ...], choice: str | None
) -> None:
    assert find_choice(text, choices) == choice


def test_value_of_an_open_ended_question_is_not_the_number_of_a_choice() -> None:
    asked = question(("skip", "decline"), is_open_ended=True)
    assert read_answer("1", asked, is_private=True) == AnswerMeaning("q", "1")
    assert read_answer("7", asked, is_private=True) == AnswerMeaning("q", "7")
    assert read_answer("Skip", asked, is_private=True) == AnswerMeaning("q", "skip")
    assert read_answer("Skip", asked) == AnswerMeaning("q", "skip")
    assert read_answer("1", asked) is None


def test_choice_of_a_later_question_is_preferred_to_free_text_for_an_earlier_one() -> None:
    questions = [question((), "first"), question(COLOURS, "second"), question(COLOURS, "third")]
    assert find_answer("red", questions, is_private=True) == AnswerMeaning("second", "red")
    assert find_answer("green", questions, is_private=True) == AnswerMeaning("first", "green")
    assert find_answer("green", questions, is_private=False) is None


def test_choice_of_the_last_closed_question_is_late_unless_it_fits_an_open_question() -> None:
    closed = question(APPROVAL_CHOICES, "closed")
    late = InvalidAnswerMeaning(QUESTION_CLOSED)
    assert find_answer("yes", [], closed, is_private=True) == late
    assert find_answer("yes please", [], closed, is_private=True) is None
    assert find_answer("yes", [question(())], closed, is_private=True) == AnswerMeaning("q", "yes")
    assert find_answer("2", [question(COLOURS)], closed, is_private=True) == AnswerMeaning("q", "blue")
    assert find_answer("4", [question(COLOURS)], closed, is_private=True) == InvalidAnswerMeaning(
        "Choose a number from 1 to 2."
    )
