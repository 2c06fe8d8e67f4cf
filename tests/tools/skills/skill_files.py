"""Writes skills to disk for tests."""

from pathlib import Path


def write_skill(parent: Path, name: str, description: str = "does things", body: str = "Do it.", **files: str) -> Path:
    """Write a skill to a folder below `parent`. In the names of `files`, `__` stands for a dot."""
    folder = parent / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")
    for file, text in files.items():
        (folder / file.replace("__", ".")).write_text(text)
    return folder
