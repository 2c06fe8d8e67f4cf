"""Simulated tools: they finish, raise, take long, swallow a cancel, never return or ask; each notes start and end."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from hark.protocol.tool import CallContext, Question, Tool, ToolError, ToolOutput, ToolSpec
from tests.simulation.model import Quiet
from tests.simulation.network_link import Link
from tests.simulation.observations import Ledger, ToolRun

SPECS = (
    ToolSpec("look", "Look."),
    ToolSpec("change", "Change.", is_changing=True),
    ToolSpec("patient", "Needs long to tidy up.", grace_seconds=5.0),
)


class SimulatedTool:
    """Does what its arguments say."""

    def __init__(self, spec: ToolSpec, ledger: Ledger, link: Link, quiet: Quiet) -> None:
        self.spec = spec
        self._ledger = ledger
        self._link = link
        self._quiet = quiet

    async def run(self, arguments: Mapping[str, Any], context: CallContext) -> ToolOutput:
        if self._link.is_dead:
            await self._link.wait(0)
        run = self._begin(context)
        try:
            text = await self._work(str(arguments.get("do")), context, run)
            run.end = "finished"
            return ToolOutput(text)
        except asyncio.CancelledError:
            run.end = "lost" if self._link.is_dead else "cancelled"
            raise
        except BaseException:
            run.end = "raised"
            raise
        finally:
            run.ended = self._ledger.mark()
            self._ledger.note(self._link.now(), self._link.owner, "tool", context.call, run.end)

    def _begin(self, context: CallContext) -> ToolRun:
        ledger = self._ledger
        run = ToolRun(
            context.call, context.turn, self.spec.name, self._link.owner, ledger.mark(), f"done {context.call}"
        )
        if any(other.call == run.call for other in ledger.tools):
            ledger.violate(f"calls: {run.call} of {run.turn} was started twice")
        if run.call not in ledger.started_calls:
            ledger.violate(f"calls: {run.call} of {run.turn} started before that was durable")
        ledger.tools.append(run)
        ledger.note(self._link.now(), self._link.owner, "tool", context.call, "starts")
        return run

    async def _work(self, what: str, context: CallContext, run: ToolRun) -> str:
        match what:
            case "long":
                await self._wait(2.0)
            case "raise":
                await self._wait(0.01)
                raise ValueError("the tool is broken")
            case "swallow":  # tidies up for a while after a cancel, then says that it is done
                try:
                    await self._wait(1.0)
                except asyncio.CancelledError:
                    await self._wait(0.05)
            case "stubborn":  # deaf to cancels, and late
                await self._deaf(3.0)
            case "never":
                await self._deaf(1e9)
            case "ask":
                return f"{run.text}: {await context.ask(Question('which?'))}"
            case "steered":
                waiting = asyncio.ensure_future(context.steered())
                try:
                    await asyncio.wait([waiting], timeout=1.0)
                finally:
                    waiting.cancel()
            case _:
                context.output("working ")
                await self._wait(self._link.delay("tool"))
        return run.text

    async def _wait(self, seconds: float) -> None:
        left = seconds
        while left > 0 and not self._quiet.is_on:
            await self._link.wait(min(left, 0.25) + 1e-6)
            left -= 0.25

    async def _deaf(self, seconds: float) -> None:
        end = self._link.now() + seconds
        while self._link.now() < end and not self._quiet.is_on:
            try:
                await self._link.wait(0.25)
            except asyncio.CancelledError:
                if self._link.is_dead:
                    raise


class SimulatedTools:
    """All of them, for one machine."""

    def __init__(self, ledger: Ledger, link: Link, quiet: Quiet) -> None:
        self._tools = {spec.name: SimulatedTool(spec, ledger, link, quiet) for spec in SPECS}

    @property
    def specs(self) -> Sequence[ToolSpec]:
        return SPECS

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def decode(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        if "do" not in arguments:
            raise ToolError("do: is missing")
        return arguments

    async def ready(self) -> None:
        """They are there."""
