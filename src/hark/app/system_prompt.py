"""The system prompt: who the agent is, where it works and what the project asks, in an order that stays the same."""

import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PROJECT_FILES = ("AGENTS.md", "CLAUDE.md")
PROJECT_CHARACTERS = 32_000
LOOK_SECONDS = 1.0
PROMPT = """\
You are Hark, an agent that listens while it works. People can interrupt you, add to what you do, or queue the next \
thing at any time; notes in square brackets tell you when that happened and what is known of calls that were cut. \
Never repeat a call whose effect is unknown without checking first. Be brief and exact. Use tools where they help.

Working directory: {workspace}
System: {system}, shell: {shell}
"""


class SystemPrompt:
    """The prompt for sessions that work in a directory. It changes only when the project's own files or `extras` do.

    `extras` are parts that come last, "" for none; they are asked at each look.
    """

    def __init__(
        self, workspace: Path, extras: Sequence[Callable[[], str]] = (), *, look_seconds: float = LOOK_SECONDS
    ) -> None:
        self._look_seconds = look_seconds
        self._workspace = workspace
        self._extras = tuple(extras)
        self._read: dict[Path, tuple[int, str]] = {}
        self._text = ""
        self._looked_at = -math.inf

    def __call__(self) -> str:
        """Return the prompt as of now, give or take a second."""
        now = time.monotonic()
        if now - self._looked_at > self._look_seconds:
            self._looked_at = now
            self._text = self._make()
        return self._text

    def _make(self) -> str:
        shell = Path(os.environ.get("SHELL", "sh")).name
        system = f"{platform.system()} {platform.machine()}"
        parts = [PROMPT.format(workspace=self._workspace, system=system, shell=shell)]
        parts.extend(self._project_texts())
        parts.extend(text for extra in self._extras if (text := extra()))
        return "\n".join(parts)

    def _project_texts(self) -> list[str]:
        """Return what the project says to agents, the outermost directory first: the nearest has the last word."""
        texts: list[str] = []
        for directory in _directories(self._workspace):
            for name in PROJECT_FILES:
                text = self._file(directory / name)
                if text:
                    texts.append(f"From {directory / name}:\n{text}\n")
                    break
        return texts

    def _file(self, path: Path) -> str:
        """Return a file's text, read again only when it changed; one that can't be read says nothing."""
        try:
            changed = path.stat().st_mtime_ns
            if self._read.get(path, (0, ""))[0] != changed:
                self._read[path] = (changed, path.read_text("utf-8", "replace")[:PROJECT_CHARACTERS].strip())
        except OSError:
            return ""
        return self._read[path][1]


def _directories(workspace: Path) -> list[Path]:
    """Return the directories from the project's root down to the workspace."""
    inner = [workspace, *workspace.parents]
    roots = [place for place, directory in enumerate(inner) if (directory / ".git").exists()]
    return list(reversed(inner[: roots[0] + 1] if roots else inner[:1]))
