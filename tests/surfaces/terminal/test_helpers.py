"""Helpers for the terminal app: safe text, reply splitting, history, drafts and early input."""

from pathlib import Path
from typing import cast

import pytest

from hark.app.slash.command_table import TERMINAL_COMMANDS
from hark.surfaces.terminal.early_input import EarlyInput
from hark.surfaces.terminal.history import History, SavedDraft, adopt_orphaned_draft
from hark.surfaces.terminal.pending_messages import MAX_IMAGE_BYTES, find_images
from hark.surfaces.terminal.screen import ConversationScreen
from hark.surfaces.terminal.terminal_commands import TerminalCommands
from hark.surfaces.terminal.widgets.streamed_reply import HARD_CHARACTERS, MarkdownBlock, ReplyBlockSplitter
from hark.text.safe_text import sanitize_input, sanitize_line, sanitize_text


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
def test_untrusted_text_is_shown_without_control_sequences(text: str, shown: str) -> None:
    assert sanitize_text(text) == shown


def test_safe_line_truncates_text_to_one_line() -> None:
    assert sanitize_line("a\nb  c\x1b[2J", 10) == "a b c"
    assert sanitize_line("x" * 50, 10) == "x" * 9 + "…"


def test_pasted_line_breaks_are_normalized() -> None:
    assert sanitize_input("a\r\nb\rc\x1b[31m") == "a\nb\nc[31m"


def split_reply(text: str, chunk_size: int = 7) -> list[MarkdownBlock]:
    prose = ReplyBlockSplitter(lambda _: None)
    for start in range(0, len(text), chunk_size):
        prose.add(text[start : start + chunk_size])
    prose.finish()
    assert prose.text == text
    return prose.blocks


def test_long_reply_is_split_between_paragraphs_without_losing_text() -> None:
    text = "\n\n".join(f"paragraph {number} " + "word " * 40 for number in range(50))
    blocks = split_reply(text)
    assert len(blocks) > 5
    assert "".join(piece.text for piece in blocks) == text
    assert all(piece.is_complete for piece in blocks)


def test_split_code_fence_is_closed_and_reopened() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(400))
    blocks = split_reply(f"before\n\n```python\n{code}\n```\n\nafter")
    inside = [piece for piece in blocks if "line_" in piece.text]
    assert len(inside) > 2
    assert all(piece.text.count("```") == 2 for piece in inside)
    assert all("```python" in piece.text for piece in inside)
    lines = [line for piece in blocks for line in piece.text.split("\n") if line.startswith("line_")]
    assert lines == code.split("\n")


def test_text_without_line_breaks_is_split_at_spaces() -> None:
    text = "word " * 5_000
    blocks = split_reply(text, 1_000)
    assert "".join(piece.text for piece in blocks) == text
    assert max(len(piece.text) for piece in blocks) <= HARD_CHARACTERS + 1_000
    assert [piece.has_margin for piece in blocks][:3] == [True, False, False]


def test_list_is_not_split_at_a_blank_line_between_its_items() -> None:
    items = "\n\n".join(f"{number}. item " + "word " * 20 for number in range(10))
    assert len(split_reply(items)) == 1


def test_input_history_ignores_a_truncated_line_and_an_unwritable_file(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    History(path).add("one\ntwo")
    path.write_bytes(path.read_bytes() + b'"cut')
    history = History(path)
    assert history.older("") == "one\ntwo"
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    History(tmp_path / "history.jsonl" / "not a folder").add("fine")


def test_saved_draft_can_be_read_again_and_is_deleted_when_empty(tmp_path: Path) -> None:
    path = tmp_path / "drafts" / "chat.1"
    draft = SavedDraft(path)
    draft.save("some text")
    assert SavedDraft(path).read() == "some text"
    assert [found.name for found in path.parent.iterdir()] == ["chat.1"]
    draft.save("")
    assert list(path.parent.iterdir()) == []


def test_new_session_adopts_the_draft_of_a_session_that_cannot_be_resumed(tmp_path: Path) -> None:
    SavedDraft(tmp_path / "known").save("belongs there")
    SavedDraft(tmp_path / "never-used").save("left behind")
    adopt_orphaned_draft(tmp_path, "chat-new", {"known"})
    assert SavedDraft(tmp_path / "chat-new").read() == "left behind"
    assert SavedDraft(tmp_path / "known").read() == "belongs there"
    adopt_orphaned_draft(tmp_path / "nowhere", "chat-new", set[str]())


def test_images_are_found_in_escaped_and_at_prefixed_paths(tmp_path: Path) -> None:
    (tmp_path / "a b.png").write_bytes(b"x")
    (tmp_path / "big.jpg").write_bytes(b"x" * (MAX_IMAGE_BYTES + 1))
    found, wrong = find_images("see a\\ b.png and @big.jpg, none.gif", tmp_path)
    assert [picture.name for picture in found] == ["a b.png"]
    assert wrong == []  # "big.jpg," is not a file name
    _, wrong = find_images("see @big.jpg", tmp_path)
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
def test_early_input_is_interpreted_like_typed_text(typed: list[str], sent: list[str], left: str) -> None:
    early_input = EarlyInput()
    for piece in typed:
        early_input.feed(piece.encode())
    assert (early_input.sent, early_input.text, early_input.is_quit_requested) == (sent, left, False)


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_ctrl_c_and_ctrl_d_on_an_empty_early_line_request_quit(key: str) -> None:
    early_input = EarlyInput()
    early_input.feed(key.encode())
    assert early_input.is_quit_requested


def test_terminal_supports_every_command_that_the_command_table_lists_for_it() -> None:
    commands = TerminalCommands(cast("ConversationScreen", None), lambda: None)
    assert all(commands.is_terminal_command(f"/{command.name} x") for command in TERMINAL_COMMANDS)
