"""The system prompt, as the project shapes it."""

from pathlib import Path

from hark.app.system_prompt import SystemPrompt


def test_the_projects_files_are_in_it_the_nearest_last(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("outer rules")
    inner = tmp_path / "part"
    inner.mkdir()
    (inner / "CLAUDE.md").write_text("inner rules")
    prompt = SystemPrompt(inner)()
    assert str(inner) in prompt
    assert prompt.index("outer rules") < prompt.index("inner rules")


def test_it_stays_the_same_until_a_file_changes(tmp_path: Path) -> None:
    prompt = SystemPrompt(tmp_path, look_seconds=0.0)
    first = prompt()
    assert prompt() == first
    (tmp_path / "AGENTS.md").write_text("be kind")
    assert "be kind" in prompt()


def test_files_above_the_projects_root_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("not ours")
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    assert "not ours" not in SystemPrompt(project)()


def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").mkdir()
    assert "From" not in SystemPrompt(tmp_path)()


def test_extra_parts_come_last_and_empty_ones_leave_no_trace(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("be kind")
    notes = [""]
    prompt = SystemPrompt(tmp_path, [lambda: notes[0], lambda: "the end"], look_seconds=0.0)
    assert prompt() == SystemPrompt(tmp_path)() + "\nthe end"
    notes[0] = "kept notes"
    assert prompt().index("be kind") < prompt().index("kept notes") < prompt().index("the end")
