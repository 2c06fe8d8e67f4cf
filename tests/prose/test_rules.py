"""The linter finds the faults that `docs/style.md` lists, and accepts plain sentences."""

import pytest

from tests.prose.rules import find_problems, find_subject_problems, sentences

FAULTS = {
    "Return what waits in the queue.": "noun clause",
    "A message of who wrote last.": "noun clause",
    "Whoever made it closes it.": "noun clause",
    "Keep all that came in.": "noun clause",
    "The caller is told about it.": "tell",
    "Show the user the heard words.": "hear",
    "A number stands before each line.": "stand",
    "Read the file anew.": "anew",
    "Each child is a session of its own.": "own",
    "The turn goes on after that.": "go on",
    "A link is no file.": "is no",
    "Wait until nobody reads.": "nobody",
    "Ask the person first.": "person",
    "Mend the line.": "mend",
    "Let go of the lease.": "let go",
    "Complete as far as known.": "as far as",
    "It starts by itself.": "by itself",
    " ".join(["word"] * 36) + ".": "36 words",
}

PLAIN = [
    "Return the pending messages, oldest first.",
    "Say what to do next.",
    "What changed in this repo?",
    "The message states what happened and why.",
    "There is no session with that name.",
    "The lease is no longer valid.",
    "Users who have access need no code.",
    "`x` stands for any name.",
    "Use one of its own commands.",
    "The part of the reply that the user has seen or heard.",
    " ".join(["word"] * 35) + ".",
]


@pytest.mark.parametrize(("sentence", "rule"), FAULTS.items())
def test_a_sentence_that_breaks_a_rule_is_reported_with_that_rule(sentence: str, rule: str) -> None:
    assert [problem for problem in find_problems(sentence) if problem.startswith(rule)]


@pytest.mark.parametrize("sentence", PLAIN)
def test_a_plain_sentence_is_accepted(sentence: str) -> None:
    assert list(find_problems(sentence)) == []


def test_a_text_is_split_at_sentence_ends_paragraphs_and_list_items() -> None:
    text = "First one. Second\nline!\n\nA paragraph\n- an item\n- another"
    assert list(sentences(text)) == ["First one.", "Second line!", "A paragraph", "an item", "another"]


@pytest.mark.parametrize(
    "subject", ["Move CLI commands to cli/", "Fix lost echo of a stopped voice message", "Embed the model"]
)
def test_an_imperative_commit_subject_is_accepted(subject: str) -> None:
    assert list(find_subject_problems(subject)) == []


@pytest.mark.parametrize(
    "subject",
    [
        "Nobody falls out of the fire unseen",
        "Fixed the echo",
        "Fixes the echo",
        "Fixing the echo",
        "fix the echo",
        "Fix the echo.",
        "The echo is fixed",
        "Fix " + "x" * 70,
        "",
    ],
)
def test_a_commit_subject_that_is_not_a_short_imperative_is_reported(subject: str) -> None:
    assert list(find_subject_problems(subject)) != []
