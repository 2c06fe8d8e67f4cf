"""Simulated tools that finish, raise, take long, ignore cancellation, hang or ask a question. Each run is recorded."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hark.protocol.tool import CallContext, Question, Tool, ToolError, ToolOutput, ToolSpec
from tests.simulation.model import QuietPhase
from tests.simulation.network_link import NetworkLink
from tests.simulation.observations import Observations, ToolRun

SPECS = (
    ToolSpec("look", "Look."),
    ToolSpec("change", "Change.", is_changing=True),
    ToolSpec("memory", "Store notes."),
    ToolSpec("patient", "Needs long to tidy up.", grace_seconds=5.0),
)


class SimulatedTool:
    """A simulated tool whose arguments select its behaviour."""

    def __init__(self, spec: ToolSpec, observations: Observations, link: NetworkLink, quiet: QuietPhase) -> None:
        self.spec = spec
        self._observations = observations
        self._link = link
        self._quiet = quiet

    async def run(self, arguments: Any, context: CallContext) -> ToolOutput:
        if self._link.is_dead:
            await self._link.wait(0)
        run = self._record_start(context)
        try:
            output = await self._produce(arguments, context, run.text)
            run.end = "finished"
        except asyncio.CancelledError:
            run.end = "lost" if self._link.is_dead else "cancelled"
            raise
        except BaseException:
            run.end = "raised"
            raise
        finally:
            run.ended_mark = self._observations.next_mark()
            self._observations.add_trace(self._link.now(), self._link.owner, "tool", context.call, run.end)
        return output

    def _record_start(self, context: CallContext) -> ToolRun:
        observations = self._observations
        run = ToolRun(
            context.call,
            context.turn,
            self.spec.name,
            self._link.owner,
            observations.next_mark(),
            f"done {context.call}",
        )
        if any(other.call == run.call for other in observations.tools):
            observations.add_violation(f"calls: {run.call} of {run.turn} was started twice")
        if run.call not in observations.started_calls:
            observations.add_violation(f"calls: {run.call} of {run.turn} started before its start record was durable")
        observations.tools.append(run)
        observations.add_trace(self._link.now(), self._link.owner, "tool", context.call, "starts")
        return run

    def decode(self, arguments: Mapping[str, Any]) -> Any:
        """Convert a call's arguments to the type that the tool expects.

        Raises:
            ToolError: The arguments are invalid.
        """
        if "do" not in arguments:
            raise ToolError("do: is missing")
        return arguments

    async def _produce(self, arguments: Any, context: CallContext, text: str) -> ToolOutput:
        return ToolOutput(await self._work(str(arguments.get("do")), context, text))

    async def _work(self, behaviour: str, context: CallContext, text: str) -> str:
        match behaviour:
            case "long":
                await self._wait(2.0)
            case "raise":
                await self._wait(0.01)
                raise ValueError("the tool is broken")
            case "swallow":  # cleans up for a while after a cancellation, then finishes
                try:
                    await self._wait(1.0)
                except asyncio.CancelledError:
                    await self._wait(0.05)
            case "stubborn":  # ignores cancellation, and finishes late
                await self._ignore_cancellation(3.0)
            case "never":
                await self._ignore_cancellation(1e9)
            case "ask":
                return f"{text}: {await context.ask(Question('which?'))}"
            case "steered":
                waiting = asyncio.ensure_future(context.wait_for_steer())
                try:
                    await asyncio.wait([waiting], timeout=1.0)
                finally:
                    waiting.cancel()
            case _:
                context.output("working ")
                await self._wait(self._link.delay("tool"))
        return text

    async def _wait(self, seconds: float) -> None:
        left = seconds
        while left > 0 and not self._quiet.is_on:
            await self._link.wait(min(left, 0.25) + 1e-6)
            left -= 0.25

    async def _ignore_cancellation(self, seconds: float) -> None:
        end = self._link.now() + seconds
        while self._link.now() < end and not self._quiet.is_on:
            try:
                await self._link.wait(0.25)
            except asyncio.CancelledError:
                if self._link.is_dead:
                    raise


class SimulatedTools:
    """All simulated tools of one machine."""

    def __init__(
        self, observations: Observations, link: NetworkLink, quiet: QuietPhase, others: Sequence[SimulatedTool]
    ) -> None:
        tools = [SimulatedTool(spec, observations, link, quiet) for spec in SPECS]
        self._tools = {tool.spec.name: tool for tool in (*tools, *others)}

    @property
    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self._tools.values()]

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def decode(self, spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
        return self._tools[spec.name].decode(arguments)

    async def wait_until_ready(self, session: str, notify: Callable[[str], None]) -> None:
        """Return immediately: the tools are always ready."""
