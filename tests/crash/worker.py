"""A process that runs the real agent for the crash driver, and can die at a chosen instant."""

import argparse
import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

import hark
from hark.protocol.tool import CallContext
from tests.crash.wire import READY, Order, Reply

ORDERS = msgspec.json.Decoder(Order)


class Death:
    """A point at which the process kills itself, when it comes by for the given time."""

    def __init__(self, point: str, count: int) -> None:
        self._point = point
        self._left = count
        self._process = os.getpid()

    def come_by(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(self._process, signal.SIGKILL)


class Marks:
    """Tools with an effect that lasts: one line for each call."""

    def __init__(self, path: Path, death: Death) -> None:
        self._path = path
        self._death = death

    async def mark(self, context: CallContext) -> str:
        """Make a mark."""
        self._write(context.call)
        await asyncio.sleep(0.002)
        return "marked"

    def mark_in_child(self, context: CallContext) -> str:
        """Make a mark, from a process of its own."""
        self._write(context.call)
        return "marked"

    def _write(self, call: str) -> None:
        self._death.come_by("before effect")
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{call}\n".encode())
        os.fsync(file)
        os.close(file)
        self._death.come_by("effect")


class Desk:
    """Carries out the driver's orders, side by side, and tells what became of each."""

    def __init__(self, agent: hark.Agent, death: Death) -> None:
        self._agent = agent
        self._death = death

    async def run(self, sessions: list[str]) -> None:
        """Work until the driver closes the line."""
        lines = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        watching = [asyncio.create_task(self._watch(session)) for session in sessions]
        self._tell(Reply(READY))
        async with asyncio.TaskGroup() as tasks:
            while line := await lines.readline():
                tasks.create_task(self._carry_out(ORDERS.decode(line)))
        for task in watching:
            task.cancel()

    async def _watch(self, session: str) -> None:
        async for event in self._agent.session(session).events():
            self._death.come_by(event.type)

    async def _carry_out(self, order: Order) -> None:
        session = self._agent.session(order.session)
        match order.do:
            case "say":
                receipt = await session.say(order.text, order.delivery, id=order.message)
                self._death.come_by("before receipt")
                self._tell(Reply(order.number, receipt))
                self._death.come_by("after receipt")
            case "stop":
                await session.interrupt()
                self._tell(Reply(order.number))
            case "edit":
                self._tell(Reply(order.number, refusal=await session.edit(order.message, order.text)))
            case "move":
                self._tell(Reply(order.number, refusal=await session.move(order.message, 1)))
            case "withdraw":
                self._tell(Reply(order.number, refusal=await session.withdraw(order.message)))

    def _tell(self, reply: Reply) -> None:
        with suppress(BrokenPipeError):
            sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
            sys.stdout.buffer.flush()


async def main(options: argparse.Namespace) -> None:
    home: Path = options.home
    death = Death(options.die_at, options.die_after)
    marks = Marks(home / "effects", death)
    route = {"name": "main", "base_url": f"http://127.0.0.1:{options.port}/v1", "model": "crash"}
    tools = [marks.mark, marks.mark_in_child]
    async with hark.open(home=home, routes=[route], tools=tools, approvals={"mode": "all"}) as agent:
        await Desk(agent, death).run(options.sessions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--die-at", default="")
    parser.add_argument("--die-after", type=int, default=1)
    parser.add_argument("sessions", nargs="*")
    asyncio.run(main(parser.parse_args()))
