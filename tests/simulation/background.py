"""Simulated background work: real children and process watches, on processes that exist only in the simulation."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from hark.app.background_work import BackgroundWork
from hark.engine.session.fanout import Subscription
from hark.engine.session.restrictions import Restrictions
from hark.engine.session.router import SessionRouter
from hark.processes.background import BackgroundProcesses
from hark.protocol.commands import Answer, Interrupt, Say
from hark.protocol.receipts import Refusal
from hark.protocol.session import Session
from hark.protocol.tool import CallContext, Tool, ToolError, ToolOutput
from hark.tools.children import ChildOptions
from hark.tools.delegate import DelegateArguments, DelegateTool
from hark.tools.process_tool import ProcessArguments, ProcessTool
from tests.simulation.model import QuietPhase
from tests.simulation.network_link import NetworkLink
from tests.simulation.observations import Observations
from tests.simulation.tools import SimulatedTool

POLL_SECONDS = 0.25
PROCESS_SECONDS = (0.1, 0.4, 0.6, 1.5, 6.0)


class SimulatedProcess:
    """A background process that runs for some simulated seconds, until it is stopped, or until the quiet phase."""

    def __init__(self, name: str, link: NetworkLink, quiet: QuietPhase, seconds: float) -> None:
        self.name = self.work = name
        self.command_text = "job"
        self.status_text = "ended"
        self.pid = 1
        self.exit_code = 0
        self.is_end_read = False
        self.was_stopped = False
        self.output = SimpleNamespace(peek=lambda: f"output of {name}", read=lambda: "", unread_count=0)
        self._link = link
        self._quiet = quiet
        self._has_ended = asyncio.Event()
        self._task = asyncio.create_task(self._run(seconds), name=f"process {name}")

    @property
    def is_running(self) -> bool:
        return not self._has_ended.is_set()

    def __str__(self) -> str:
        return self.name

    async def wait_until_ended(self) -> None:
        await self._has_ended.wait()

    async def stop(self, grace_seconds: float = 0.0) -> None:
        self.was_stopped = True
        self._has_ended.set()

    async def _run(self, seconds: float) -> None:
        end = self._link.now() + seconds
        while self._link.now() < end and not self._quiet.is_on and self.is_running:
            await self._link.wait(min(POLL_SECONDS, seconds) + 1e-6)
        self._has_ended.set()


def _get_folder(session: str) -> Path:
    return Path("/simulated")


class SimulatedProcesses:
    """The background processes of one machine."""

    def __init__(self, link: NetworkLink, quiet: QuietPhase, random: Random) -> None:
        self.states = SimpleNamespace(get_folder=_get_folder)
        self._link = link
        self._quiet = quiet
        self._random = random
        self._processes: list[SimulatedProcess] = []

    def start(self, session: str, workspace: Path, command: str, name: str) -> SimulatedProcess:
        number = len(self._processes) + 1
        seconds = self._random.choice(PROCESS_SECONDS)
        process = SimulatedProcess(f"{self._link.owner}-job{number}", self._link, self._quiet, seconds)
        self._processes.append(process)
        return process

    def list_processes(self, session: str) -> list[SimulatedProcess]:
        return self._processes

    def remove(self, session: str, process: SimulatedProcess) -> None:
        self._processes.remove(process)


class ChildSession:
    """A child session on one machine."""

    def __init__(self, name: str, router: SessionRouter, link: NetworkLink) -> None:
        self.id = name
        self._proxy = router.proxy_for(name)
        self._link = link

    def events(self) -> Subscription:
        return self._proxy.subscribe()

    async def say(self, text: str, *, id: str) -> None:  # noqa: A002 the name in the protocol
        await self._proxy.say(Say(id, text))

    async def interrupt(self, source: str) -> None:
        await self._proxy.interrupt(Interrupt(self._link.new_id(), source))

    async def answer(self, question: str, text: str) -> Refusal | None:
        return await self._proxy.answer(Answer(self._link.new_id(), question, text))


class BackgroundTool(SimulatedTool):
    """A real tool whose runs are recorded."""

    def __init__(self, tool: Tool, observations: Observations, link: NetworkLink, quiet: QuietPhase) -> None:
        super().__init__(tool.spec, observations, link, quiet)
        self._tool = tool

    def decode(self, arguments: Mapping[str, Any]) -> Any:
        kind = DelegateArguments if self.spec.name == "delegate" else ProcessArguments
        try:
            return msgspec.convert(arguments, kind)
        except msgspec.ValidationError as error:
            raise ToolError(str(error)) from error

    async def _produce(self, arguments: Any, context: CallContext, text: str) -> ToolOutput:
        return await self._tool.run(arguments, context)


def make_background_tools(
    observations: Observations,
    link: NetworkLink,
    quiet: QuietPhase,
    random: Random,
    router: Callable[[], SessionRouter],
) -> tuple[BackgroundWork, list[SimulatedTool]]:
    """Return the background work of a machine, and the tools that start it."""
    processes = cast("BackgroundProcesses", SimulatedProcesses(link, quiet, random))
    work = BackgroundWork(processes, lambda session, command: router().proxy_for(session).change(command))

    def open_child(name: str, options: ChildOptions) -> Session:
        router().set_restrictions(name, Restrictions(()))
        return cast("Session", ChildSession(name, router(), link))

    tools = (DelegateTool(open_child, work.children, lambda: True), ProcessTool(processes, work))
    return work, [BackgroundTool(tool, observations, link, quiet) for tool in tools]
