"""Notes in the system prompt: the newest notes within the size limit, read again when they change."""

from functools import partial
from pathlib import Path

from hark.app.system_prompt import INTRODUCTION, MemoryPrompt
from hark.tools.notes.notes import NotesFile, add_note, project_notes, user_notes


def add_notes(file: NotesFile, *notes: str) -> None:
    for note in notes:
        file.change(partial(add_note, note=note))


def test_without_notes_the_memory_section_of_the_prompt_is_empty(tmp_path: Path) -> None:
    assert MemoryPrompt(tmp_path, tmp_path)() == ""
    add_notes(project_notes(tmp_path, tmp_path / "other"), "of another project")
    assert MemoryPrompt(tmp_path, tmp_path)() == ""


def test_notes_about_the_user_and_the_project_have_separate_sections(tmp_path: Path) -> None:
    add_notes(user_notes(tmp_path), "Likes tea")
    add_notes(project_notes(tmp_path, tmp_path), "Built with make")
    assert MemoryPrompt(tmp_path, tmp_path)() == (
        f"{INTRODUCTION}\nAbout the user:\n- Likes tea\nAbout this project:\n- Built with make\n"
    )


def test_changed_and_deleted_notes_files_are_detected(tmp_path: Path) -> None:
    memory_prompt = MemoryPrompt(tmp_path, tmp_path)
    add_notes(user_notes(tmp_path), "one")
    assert "- one" in memory_prompt()
    add_notes(user_notes(tmp_path), "two")
    assert "- two" in memory_prompt()
    user_notes(tmp_path).path.unlink()
    assert memory_prompt() == ""


def test_the_newest_notes_within_the_size_limit_are_shown_and_the_others_are_counted(tmp_path: Path) -> None:
    add_notes(user_notes(tmp_path), *(f"person {number:02}" for number in range(30)))
    add_notes(project_notes(tmp_path, tmp_path), *(f"project {number:02}" for number in range(3)))
    text = MemoryPrompt(tmp_path, tmp_path, characters=200)()
    assert len(text) < 200 + len(INTRODUCTION) + 150
    assert "- person 29" in text
    assert "- person 00" not in text
    assert "older notes are not shown" in text
    assert all(f"- project {number:02}" in text for number in range(3))
    assert "- person" not in MemoryPrompt(tmp_path, tmp_path, characters=0)()


def test_an_unreadable_notes_file_adds_nothing_to_the_prompt(tmp_path: Path) -> None:
    user_notes(tmp_path).path.mkdir(parents=True)
    assert MemoryPrompt(tmp_path, tmp_path)() == ""


def test_a_huge_notes_file_is_truncated_in_the_prompt(tmp_path: Path) -> None:
    path = user_notes(tmp_path).path
    path.parent.mkdir(parents=True)
    path.write_text("- a note\n" * 1_000_000)
    assert len(MemoryPrompt(tmp_path, tmp_path)()) < 5_000
