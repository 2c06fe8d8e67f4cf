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


class KillPoint:
    """Kills its own process when `point` is reached for the `count`-th time."""

    def __init__(self, point: str, count: int) -> None:
        self._point = point
        self._remaining = count
        self._process = os.getpid()

    def reach(self, point: str) -> None:
        if point == self._point:
            self._remaining -= 1
            if self._remaining == 0:
                os.kill(self._process, signal.SIGKILL)


class MarkTools:
    """Tools with a durable effect: one line in a file per call."""

    def __init__(self, path: Path, kill_point: KillPoint) -> None:
        self._path = path
        self._kill_point = kill_point

    async def mark(self, context: CallContext) -> str:
        """Append this call's id to the effects file."""
        self._write(context.call)
        await asyncio.sleep(0.002)
        return "marked"

    def mark_in_child(self, context: CallContext) -> str:
        """Append this call's id to the effects file from a separate process."""
        self._write(context.call)
        return "marked"

    def _write(self, call: str) -> None:
        self._kill_point.reach("before effect")
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{call}\n".encode())
        os.fsync(file)
        os.close(file)
        self._kill_point.reach("effect")


class OrderRunner:
    """Runs the driver's orders concurrently and replies to each."""

    def __init__(self, agent: hark.Agent, kill_point: KillPoint) -> None:
        self._agent = agent
        self._kill_point = kill_point

    async def run(self, sessions: list[str]) -> None:
        """Run orders until the driver closes the input."""
        lines = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        watchers = [asyncio.create_task(self._watch(session)) for session in sessions]
        self._send_reply(Reply(READY))
        async with asyncio.TaskGroup() as tasks:
            while line := await lines.readline():
                tasks.create_task(self._run_order(ORDERS.decode(line)))
        for task in watchers:
            task.cancel()

    async def _watch(self, session: str) -> None:
        async for event in self._agent.session(session).events():
            self._kill_point.reach(event.type)

    async def _run_order(self, order: Order) -> None:
        session = self._agent.session(order.session)
        match order.do:
            case "say":
                receipt = await session.say(order.text, order.delivery, id=order.message)
                self._kill_point.reach("before receipt")
                self._send_reply(Reply(order.number, receipt))
                self._kill_point.reach("after receipt")
            case "stop":
                await session.interrupt()
                self._send_reply(Reply(order.number))
            case "edit":
                self._send_reply(Reply(order.number, refusal=await session.edit(order.message, order.text)))
            case "move":
                self._send_reply(Reply(order.number, refusal=await session.move(order.message, 1)))
            case "withdraw":
                self._send_reply(Reply(order.number, refusal=await session.withdraw(order.message)))

    def _send_reply(self, reply: Reply) -> None:
        with suppress(BrokenPipeError):
            sys.stdout.buffer.write(msgspec.json.encode(reply) + b"\n")
            sys.stdout.buffer.flush()


async def main(options: argparse.Namespace) -> None:
    home: Path = options.home
    kill_point = KillPoint(options.die_at, options.die_after)
    marks = MarkTools(home / "effects", kill_point)
    route = {"name": "main", "base_url": f"http://127.0.0.1:{options.port}/v1", "model": "crash"}
    tools = [marks.mark, marks.mark_in_child]
    async with hark.open(home=home, routes=[route], tools=tools, approvals={"mode": "all"}) as agent:
        await OrderRunner(agent, kill_point).run(options.sessions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--die-at", default="")
    parser.add_argument("--die-after", type=int, default=1)
    parser.add_argument("sessions", nargs="*")
    asyncio.run(main(parser.parse_args()))
