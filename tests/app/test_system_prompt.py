"""The system prompt and the project's instructions."""

from pathlib import Path

from hark.app.system_prompt import SystemPrompt


def test_project_instructions_are_in_the_prompt_with_the_nearest_file_last(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("outer rules")
    inner = tmp_path / "part"
    inner.mkdir()
    (inner / "CLAUDE.md").write_text("inner rules")
    prompt = SystemPrompt(inner)()
    assert str(inner) in prompt
    assert prompt.index("outer rules") < prompt.index("inner rules")


def test_the_prompt_changes_only_when_an_instructions_file_changes(tmp_path: Path) -> None:
    prompt = SystemPrompt(tmp_path, refresh_seconds=0.0)
    first = prompt()
    assert prompt() == first
    (tmp_path / "AGENTS.md").write_text("be kind")
    assert "be kind" in prompt()


def test_instruction_files_above_the_projects_root_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("not ours")
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    assert "not ours" not in SystemPrompt(project)()


def test_an_unreadable_project_file_adds_nothing_to_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").mkdir()
    assert "From" not in SystemPrompt(tmp_path)()


def test_extra_prompt_sections_come_last_and_empty_sections_are_omitted(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("be kind")
    notes = [""]
    prompt = SystemPrompt(tmp_path, [lambda: notes[0], lambda: "the end"], refresh_seconds=0.0)
    assert prompt() == SystemPrompt(tmp_path)() + "\nthe end"
    notes[0] = "kept notes"
    assert prompt().index("be kind") < prompt().index("kept notes") < prompt().index("the end")
