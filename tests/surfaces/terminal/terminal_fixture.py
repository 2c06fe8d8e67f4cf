"""The terminal app on a real agent, with a scripted model and no terminal."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

import hark
from hark.protocol.provider import CallChunk
from hark.providers.scripted import Reply, ScriptedProvider
from hark.surfaces.terminal.app import TerminalApp
from hark.surfaces.terminal.environment import TerminalEnvironment
from tests.waiting import until

LOOK_SECONDS = 60.0


class Seat:
    """A person in front of the app."""

    def __init__(self, app: TerminalApp, pilot: Pilot[None], provider: ScriptedProvider, agent: hark.Agent) -> None:
        self.app = app
        self.pilot = pilot
        self.provider = provider
        self.agent = agent

    @property
    def log(self) -> str:
        """The whole conversation as it is drawn."""
        view = self.app.log_view
        while any(drawn.width == 0 for drawn in view._drawn) and view.size.width:
            view._draw_stale()
        return view.text

    @property
    def line(self) -> str:
        """What is being typed."""
        return self.app.composer.text

    @property
    def screen(self) -> str:
        """What is seen, with everything that differs from run to run made the same."""
        lines = [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]
        return _same("\n".join(lines))

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if letter == " " else letter for letter in text))

    async def say(self, text: str, key: str = "enter") -> None:
        """Type and send."""
        self.app.composer.insert(text)
        await self.pilot.press(key)

    async def until(self, wanted: str | Callable[[], object]) -> None:
        """Return when these words are in the conversation, or this is true."""
        is_there = wanted if callable(wanted) else lambda: wanted in self.log

        async def look_again() -> None:
            self.app.log_view.flush()
            await self.pilot.pause(0.01)

        await until(
            is_there,
            seconds=LOOK_SECONDS,
            changed=look_again,
            shows=lambda: f"{wanted!r} in {self.log}\n---\n{self.screen}",
        )

    async def rest(self) -> None:
        """Return when nothing runs."""
        await self.until(lambda: not self.app.progress.turn)


@asynccontextmanager
async def seat(
    home: Path,
    script: Sequence[Reply],
    *,
    size: tuple[int, int] = (80, 24),
    tools: Sequence[Any] = (),
    session: str = "demo",
    place: TerminalEnvironment | None = None,
    **sections: Any,
) -> AsyncGenerator[Seat]:
    """Open an agent on this home, and the app on it."""
    provider = ScriptedProvider(script)
    settings: dict[str, Any] = {"store": {"url": "memory"}, "approvals": {"mode": "all"}, **sections}
    routes = [{"name": "main", "provider": provider}]
    workspace = home / "work"
    workspace.mkdir(exist_ok=True)
    opened = hark.open(home=home, workspace=workspace, routes=routes, tools=tools, sweeps=False, **settings)
    async with opened as agent:
        app = TerminalApp(agent, session, place or TerminalEnvironment(home, workspace))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            yield Seat(app, pilot, provider, agent)


def call(name: str, number: int = 1, **arguments: Any) -> CallChunk:
    """One call in a reply."""
    return CallChunk(number - 1, f"call_{number}", name, json.dumps(arguments))


async def released(gate: asyncio.Event) -> str:
    """Wait for a gate, as a tool may."""
    await gate.wait()
    return "the gate is open"


def _same(text: str) -> str:
    text = re.sub(r"\d+(\.\d+)? ms\b", "N ms", text)
    text = re.sub(r"\((?:\w+ \d+(?:, )?)+\)", "(PARTS)", text)
    text = re.sub(r"\d+(\.\d+)? s\b", "N s", text)
    return re.sub(r" +\n", "\n", text)
