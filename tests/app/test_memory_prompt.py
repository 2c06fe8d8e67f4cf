"""What the prompt says of notes: the newest that fit, read again when they change."""

from functools import partial
from pathlib import Path

from hark.app.system_prompt import INTRODUCTION, Remembered
from hark.tools.notes.notes import NotesFile, added, notes_of_person, notes_of_project


def keep(file: NotesFile, *notes: str) -> None:
    for note in notes:
        file.change(partial(added, note=note))


def test_there_is_nothing_to_say_without_notes(tmp_path: Path) -> None:
    assert Remembered(tmp_path, tmp_path)() == ""
    keep(notes_of_project(tmp_path, tmp_path / "other"), "of another project")
    assert Remembered(tmp_path, tmp_path)() == ""


def test_notes_of_the_person_and_of_the_project_are_told_apart(tmp_path: Path) -> None:
    keep(notes_of_person(tmp_path), "Likes tea")
    keep(notes_of_project(tmp_path, tmp_path), "Built with make")
    assert Remembered(tmp_path, tmp_path)() == (
        f"{INTRODUCTION}\nAbout the person:\n- Likes tea\nOn this project:\n- Built with make\n"
    )


def test_a_change_is_seen_and_so_is_the_end_of_a_file(tmp_path: Path) -> None:
    remembered = Remembered(tmp_path, tmp_path)
    keep(notes_of_person(tmp_path), "one")
    assert "- one" in remembered()
    keep(notes_of_person(tmp_path), "two")
    assert "- two" in remembered()
    notes_of_person(tmp_path).path.unlink()
    assert remembered() == ""


def test_the_newest_that_fit_are_shown_and_the_rest_is_counted(tmp_path: Path) -> None:
    keep(notes_of_person(tmp_path), *(f"person {number:02}" for number in range(30)))
    keep(notes_of_project(tmp_path, tmp_path), *(f"project {number:02}" for number in range(3)))
    text = Remembered(tmp_path, tmp_path, characters=200)()
    assert len(text) < 200 + len(INTRODUCTION) + 150
    assert "- person 29" in text
    assert "- person 00" not in text
    assert "older ones are not shown" in text
    assert all(f"- project {number:02}" in text for number in range(3))
    assert "- person" not in Remembered(tmp_path, tmp_path, characters=0)()


def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    notes_of_person(tmp_path).path.mkdir(parents=True)
    assert Remembered(tmp_path, tmp_path)() == ""


def test_a_huge_file_is_read_in_part(tmp_path: Path) -> None:
    path = notes_of_person(tmp_path).path
    path.parent.mkdir(parents=True)
    path.write_text("- a note\n" * 1_000_000)
    assert len(Remembered(tmp_path, tmp_path)()) < 5_000
