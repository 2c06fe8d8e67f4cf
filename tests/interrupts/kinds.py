"""The kinds of interrupt: each ends what runs, and returns when that has settled."""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable

from hark.protocol.events import ReceiptChanged
from hark.protocol.receipts import Settled
from tests.interrupts.interrupt_fixture import World

NEXT = "next please"


async def stop(world: World) -> Settled | None:
    return await world.session.interrupt()


async def message(world: World) -> Settled | None:
    receipt = await world.say(NEXT)
    await world.shows(ReceiptChanged, lambda event: event.receipt.id == receipt.id and event.receipt.state == "started")
    return None


async def steer_then_stop(world: World) -> Settled | None:
    world.say("more", "steer")
    await asyncio.sleep(0)
    return await world.session.interrupt()


async def other_task(world: World) -> Settled | None:
    return await asyncio.create_task(world.session.interrupt("another task"))


async def thread(world: World) -> Settled | None:
    done = threading.Thread(target=world.session.interrupt_soon)
    done.start()
    await asyncio.to_thread(done.join)
    return await world.session.interrupt()


async def closed(world: World) -> Settled | None:
    await world.close()
    return None


async def process(world: World) -> Settled | None:
    environment = {**os.environ, "HARK_HOME": str(world.home)}
    command = [sys.executable, "-m", "hark", "stop", "demo"]
    running = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    out, _ = await running.communicate()
    assert running.returncode == 0
    assert b'"interrupted"' in out
    return None


Kind = Callable[[World], Awaitable[Settled | None]]

KINDS: dict[str, Kind] = {
    "stop": stop,
    "a message": message,
    "a steer, then a stop": steer_then_stop,
    "a stop in another task": other_task,
    "a stop in another thread": thread,
    "the agent is closed": closed,
}
