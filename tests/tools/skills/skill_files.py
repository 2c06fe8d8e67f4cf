"""Skills on disk, for tests."""

from pathlib import Path


def write_skill(place: Path, name: str, description: str = "does things", body: str = "Do it.", **files: str) -> Path:
    """Write a skill into a folder of skills; a further file's name has __ for its dot."""
    folder = place / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n")
    for file, text in files.items():
        (folder / file.replace("__", ".")).write_text(text)
    return folder
