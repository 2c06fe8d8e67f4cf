"""The small parts of the terminal app: safe text, cuts, history, drafts, what was typed early."""

from pathlib import Path
from typing import cast

import pytest

from hark.app.slash.table import TERMINAL_COMMANDS
from hark.surfaces.terminal.early_input import EarlyInput
from hark.surfaces.terminal.history import History, SavedDraft, adopt
from hark.surfaces.terminal.pending_messages import MOST_BYTES, pictures_in
from hark.surfaces.terminal.screen import ConversationScreen
from hark.surfaces.terminal.terminal_commands import TerminalCommands
from hark.surfaces.terminal.widgets.prose import HARD_CHARACTERS, Prose, ProseBlock
from hark.text.safe_text import safe, safe_line, typed_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nline", "plain\ttext\nline"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]52;c;aGk=\x1b\\x", "x"),
        ("\x1bP1$r\x1b\\x", "x"),
        ("10%\r20%\r30%", "30%"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("bell\x07 null\x00 del\x7f c1\x9b31m", "bell null del c1"),
        ("half a sequence \x1b", "half a sequence "),
        ("exe.\u202egpj", "exe.gpj"),
        ("漢字 👍 é", "漢字 👍 é"),
    ],
)
def test_text_of_others_is_shown_without_commands_to_the_terminal(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_a_line_is_cut_and_stays_one_line() -> None:
    assert safe_line("a\nb  c\x1b[2J", 10) == "a b c"
    assert safe_line("x" * 50, 10) == "x" * 9 + "…"


def test_pasted_line_ends_become_our_own() -> None:
    assert typed_text("a\r\nb\rc\x1b[31m") == "a\nb\nc[31m"


def pieces(text: str, size: int = 7) -> list[ProseBlock]:
    prose = Prose(lambda _: None)
    for start in range(0, len(text), size):
        prose.add(text[start : start + size])
    prose.end()
    assert prose.written == text
    return prose.pieces


def test_a_reply_is_cut_between_paragraphs_and_nothing_is_lost() -> None:
    text = "\n\n".join(f"paragraph {number} " + "word " * 40 for number in range(50))
    cut = pieces(text)
    assert len(cut) > 5
    assert "".join(piece.text for piece in cut) == text
    assert all(piece.is_whole for piece in cut)


def test_a_long_fence_is_closed_and_opened_again() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(400))
    cut = pieces(f"before\n\n```python\n{code}\n```\n\nafter")
    inside = [piece for piece in cut if "line_" in piece.text]
    assert len(inside) > 2
    assert all(piece.text.count("```") == 2 for piece in inside)
    assert all("```python" in piece.text for piece in inside)
    lines = [line for piece in cut for line in piece.text.split("\n") if line.startswith("line_")]
    assert lines == code.split("\n")


def test_a_text_without_any_line_end_is_cut_at_spaces() -> None:
    text = "word " * 5_000
    cut = pieces(text, 1_000)
    assert "".join(piece.text for piece in cut) == text
    assert max(len(piece.text) for piece in cut) <= HARD_CHARACTERS + 1_000
    assert [piece.has_air for piece in cut][:3] == [True, False, False]


def test_a_list_is_not_torn_by_a_blank_line_in_it() -> None:
    items = "\n\n".join(f"{number}. item " + "word " * 20 for number in range(10))
    assert len(pieces(items)) == 1


def test_history_survives_a_cut_line_and_an_unwritable_file(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    History(path).add("one\ntwo")
    path.write_bytes(path.read_bytes() + b'"cut')
    history = History(path)
    assert history.older("") == "one\ntwo"
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    History(tmp_path / "history.jsonl" / "not a folder").add("fine")


def test_a_draft_is_read_again_and_gone_when_empty(tmp_path: Path) -> None:
    path = tmp_path / "drafts" / "chat.1"
    draft = SavedDraft(path)
    draft.save("some text")
    assert SavedDraft(path).read() == "some text"
    assert [found.name for found in path.parent.iterdir()] == ["chat.1"]
    draft.save("")
    assert list(path.parent.iterdir()) == []


def test_a_new_session_takes_the_draft_of_one_that_nobody_could_resume(tmp_path: Path) -> None:
    SavedDraft(tmp_path / "known").save("belongs there")
    SavedDraft(tmp_path / "never-used").save("left behind")
    adopt(tmp_path, "chat-new", {"known"})
    assert SavedDraft(tmp_path / "chat-new").read() == "left behind"
    assert SavedDraft(tmp_path / "known").read() == "belongs there"
    adopt(tmp_path / "nowhere", "chat-new", set[str]())


def test_pictures_are_found_by_any_way_of_naming_them(tmp_path: Path) -> None:
    (tmp_path / "a b.png").write_bytes(b"x")
    (tmp_path / "big.jpg").write_bytes(b"x" * (MOST_BYTES + 1))
    found, wrong = pictures_in("see a\\ b.png and @big.jpg, none.gif", tmp_path)
    assert [picture.name for picture in found] == ["a b.png"]
    assert wrong == []  # "big.jpg," is not the name of a file
    _, wrong = pictures_in("see @big.jpg", tmp_path)
    assert "larger than 5 MB" in wrong[0]


@pytest.mark.parametrize(
    ("typed", "sent", "left"),
    [
        (["hello"], [], "hello"),
        (["hel", "lo\r"], ["hello"], ""),
        (["hello\r", "world"], ["hello"], "world"),
        (["pasted\rwithout brackets"], [], "pasted\nwithout brackets"),
        (["\x1b[200~two\rlines\r\x1b[201~"], [], "two\nlines\n"),
        (["\x1b[200~cut ", "paste\x1b[201~ on"], [], "cut paste on"),
        (["ab\x1b[Dcd", "\x1bOP", "\x1b"], [], "abcd"),
        (["a\x1b[", "Db"], [], "ab"),
        (["abc\x7f\x7fx", "\x15", "new"], [], "new"),
        (["text\x03", "after"], [], "after"),
        (["\r", " \r"], [], ""),
        (["a family: 👩\u200d👧"], [], "a family: 👩\u200d👧"),
    ],
)
def test_what_is_typed_before_the_app_is_there_is_understood(typed: list[str], sent: list[str], left: str) -> None:
    one = EarlyInput()
    for piece in typed:
        one.read(piece.encode())
    assert (one.sent, one.text, one.is_left) == (sent, left, False)


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_ctrl_c_and_ctrl_d_in_an_empty_first_line_leave(key: str) -> None:
    one = EarlyInput()
    one.read(key.encode())
    assert one.is_left


def test_the_terminal_runs_every_command_that_the_table_lists_for_it() -> None:
    commands = TerminalCommands(cast("ConversationScreen", None), lambda: None)
    assert all(commands.knows(f"/{command.name} x") for command in TERMINAL_COMMANDS)
