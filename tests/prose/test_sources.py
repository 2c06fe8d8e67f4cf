"""The linter reads every kind of text, checks it, and rejects unneeded allow-list entries."""

import subprocess
from pathlib import Path

from tests.prose.__main__ import check, check_allow_list, check_commits
from tests.prose.sources import (
    Text,
    commit_subjects,
    first_version,
    javascript_texts,
    markdown_texts,
    python_texts,
)

PYTHON = '''"""Module text."""

LIMIT = 3  # trailing text


def test_names_are_read() -> None:
    """Function text."""
    # two lines
    # of a comment
    raise ValueError(f"cannot open the file {LIMIT}")
'''


def _texts(texts: list[Text]) -> set[tuple[str, int, str]]:
    return {(text.kind, text.line, text.text) for text in texts}


def test_docstrings_comments_test_names_and_messages_are_read_from_python() -> None:
    assert _texts(list(python_texts(PYTHON, "src/hark/x.py"))) == {
        ("docstring", 1, "Module text."),
        ("comment", 3, "trailing text"),
        ("test name", 6, "names are read"),
        ("docstring", 7, "Function text."),
        ("comment", 8, "two lines\nof a comment"),
        ("message", 10, "cannot open the file {}"),
    }


def test_messages_are_not_read_from_tests() -> None:
    assert "message" not in {text.kind for text in python_texts(PYTHON, "tests/test_x.py")}


def test_sql_and_short_strings_are_not_messages() -> None:
    source = 'A = "SELECT id FROM sessions WHERE name = ?"\nB = "two words"\n'
    assert list(python_texts(source, "src/hark/x.py")) == []


def test_comments_and_sentences_are_read_from_javascript() -> None:
    source = 'show("The queue is empty now"); // why it is shown\nlet id = "no-sentence";\n'
    assert _texts(list(javascript_texts(source, "src/page.js"))) == {
        ("message", 1, "The queue is empty now"),
        ("comment", 1, "why it is shown"),
    }


def test_pages_are_read_without_code_and_link_targets() -> None:
    source = "# Title\n\nRun `hark` now,\nsee [here](what.md).\n\n```sh\nwhat waits\n```\n- an item\n"
    assert [text.text for text in markdown_texts(source, "docs/x.md")] == [
        "# Title",
        "Run `code` now,\nsee [here].",
        "- an item",
    ]


def test_a_sentence_that_breaks_a_rule_is_reported_unless_it_is_allowed() -> None:
    text = Text("docs/x.md", 3, "page", "All is well. Read it anew.")
    assert [problem.splitlines()[0] for problem in check([text], [])] == ["docs/x.md:3: page: anew (anew): write again"]
    assert list(check([text], ["docs/x.md: Read it anew."])) == []


def test_an_allow_list_entry_without_its_sentence_is_reported() -> None:
    problems = list(check_allow_list([], ["docs/gone.md: Read it anew."]))
    assert "remove this entry" in problems[0]


def test_a_bad_commit_subject_is_reported() -> None:
    assert list(check_commits(["Fix the queue"])) == []
    assert len(list(check_commits(["Fixed the queue"]))) == 1


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_the_first_committed_version_of_a_file_is_read_from_git(tmp_path: Path) -> None:
    file = tmp_path / "allowed.txt"
    assert first_version(file, tmp_path) is None
    _git(tmp_path, "init", "--quiet")
    file.write_text("one\ntwo\n")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--message", "Add a list")
    file.write_text("one\nthree\n")
    _git(tmp_path, "commit", "--all", "--message", "Change the list")
    assert first_version(file, tmp_path) == ["one", "two"]


def test_no_commit_subjects_are_returned_outside_of_a_checkout(tmp_path: Path) -> None:
    assert commit_subjects(tmp_path) == []
