"""The system prompt: who the agent is and where it works, in an order that stays the same."""

import os
import platform
from pathlib import Path

PROMPT = """\
You are Hark, an agent that listens while it works. People can interrupt you, add to what you do, or queue the next \
thing at any time; notes in square brackets tell you when that happened and what is known of calls that were cut. \
Never repeat a call whose effect is unknown without checking first. Be brief and exact. Use tools where they help.

Working directory: {workspace}
System: {system}, shell: {shell}
"""


def system_prompt(workspace: Path) -> str:
    """Return the prompt for a session that works in a directory."""
    shell = Path(os.environ.get("SHELL", "sh")).name
    return PROMPT.format(workspace=workspace, system=f"{platform.system()} {platform.machine()}", shell=shell)
