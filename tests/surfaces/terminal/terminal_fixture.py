"""The terminal app on a real agent with a scripted model and without a real terminal."""

import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

import hark
from hark.protocol.provider import CallChunk
from hark.providers.scripted import ScriptedProvider, ScriptedReply
from hark.surfaces.terminal.app import TerminalApp
from hark.surfaces.terminal.environment import TerminalEnvironment
from tests.waiting import until

TIMEOUT_SECONDS = 40.0  # below the time limit of a test


class TerminalFixture:
    """A running terminal app with helpers to type and to wait."""

    def __init__(self, app: TerminalApp, pilot: Pilot[None], provider: ScriptedProvider, agent: hark.Agent) -> None:
        self.app = app
        self.pilot = pilot
        self.provider = provider
        self.agent = agent

    @property
    def log(self) -> str:
        """The whole conversation as displayed."""
        view = self.app.log_view
        while any(drawn.width == 0 for drawn in view._rendered_blocks) and view.size.width:
            view._render_outdated()
        return "\n".join(line.text.rstrip() for line in view._lines)

    @property
    def input_text(self) -> str:
        """The text in the input line."""
        return self.app.composer.text

    @property
    def screen(self) -> str:
        """The visible screen. Values that differ between runs are masked."""
        lines = [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]
        return _mask_varying_values("\n".join(lines))

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if character == " " else character for character in text))

    async def send(self, text: str, key: str = "enter") -> None:
        """Type a message and send it."""
        self.app.composer.insert(text)
        await self.pilot.press(key)

    async def until(self, expected: str | Callable[[], object]) -> None:
        """Wait until the text is in the conversation or the condition is true."""
        is_met = expected if callable(expected) else lambda: expected in self.log

        async def redraw() -> None:
            self.app.log_view.flush()
            await self.pilot.pause(0.01)

        await until(
            is_met,
            seconds=TIMEOUT_SECONDS,
            changed=redraw,
            shows=lambda: f"{expected!r} in {self.log}\n---\n{self.screen}",
        )

    async def wait_until_idle(self) -> None:
        """Wait until no turn is running."""
        await self.until(lambda: not self.app.progress.turn)


@asynccontextmanager
async def open_terminal(
    home: Path,
    script: Sequence[ScriptedReply],
    *,
    size: tuple[int, int] = (80, 24),
    tools: Sequence[Any] = (),
    session: str = "demo",
    environment: TerminalEnvironment | None = None,
    provider: ScriptedProvider | None = None,
    **sections: Any,
) -> AsyncGenerator[TerminalFixture]:
    """Open an agent with this home directory and run the terminal app on it.

    `provider` replaces the one that plays `script`.
    """
    provider = provider or ScriptedProvider(script)
    settings: dict[str, Any] = {"store": {"url": "memory"}, "approvals": {"mode": "all"}, **sections}
    routes = [{"name": "main", "provider": provider}]
    workspace = home / "work"
    workspace.mkdir(exist_ok=True)
    opening = hark.open(home=home, workspace=workspace, routes=routes, tools=tools, sweeps=False, **settings)
    async with opening as agent:
        app = TerminalApp(agent, session, environment or TerminalEnvironment(home, workspace))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            yield TerminalFixture(app, pilot, provider, agent)


def call(name: str, number: int = 1, **arguments: Any) -> CallChunk:
    """Return a tool call for a scripted reply."""
    return CallChunk(number - 1, f"call_{number}", name, json.dumps(arguments))


def _mask_varying_values(text: str) -> str:
    text = re.sub(r"\d+(\.\d+)? ms\b", "N ms", text)
    text = re.sub(r"\((?:\w+ \d+(?:, )?)+\)", "(PARTS)", text)
    text = re.sub(r"\d+(\.\d+)? s\b", "N s", text)
    return re.sub(r" +\n", "\n", text)
