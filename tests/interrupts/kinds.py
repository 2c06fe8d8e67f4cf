"""The kinds of interrupt. Each one ends the running turn and returns when the turn has settled."""

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable

from hark.protocol.events import ReceiptChanged
from hark.protocol.receipts import Settled
from tests.interrupts.interrupt_fixture import InterruptFixture

NEXT = "next please"


async def stop(fixture: InterruptFixture) -> Settled | None:
    return await fixture.session.interrupt()


async def send_interrupting_message(fixture: InterruptFixture) -> Settled | None:
    receipt = await fixture.send(NEXT)
    await fixture.wait_for_event(
        ReceiptChanged, lambda event: event.receipt.id == receipt.id and event.receipt.state == "started"
    )
    return None


async def steer_then_stop(fixture: InterruptFixture) -> Settled | None:
    fixture.send("more", "steer")
    await asyncio.sleep(0)
    return await fixture.session.interrupt()


async def stop_in_other_task(fixture: InterruptFixture) -> Settled | None:
    return await asyncio.create_task(fixture.session.interrupt("another task"))


async def stop_in_thread(fixture: InterruptFixture) -> Settled | None:
    interrupting = threading.Thread(target=fixture.session.interrupt_soon)
    interrupting.start()
    await asyncio.to_thread(interrupting.join)
    return await fixture.session.interrupt()


async def close_agent(fixture: InterruptFixture) -> Settled | None:
    await fixture.close()
    return None


async def stop_from_other_process(fixture: InterruptFixture) -> Settled | None:
    environment = {**os.environ, "HARK_HOME": str(fixture.home)}
    command = [sys.executable, "-m", "hark", "stop", "demo"]
    running = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
    out, _ = await running.communicate()
    assert running.returncode == 0
    assert b'"interrupted"' in out
    return None


InterruptKind = Callable[[InterruptFixture], Awaitable[Settled | None]]

KINDS: dict[str, InterruptKind] = {
    "stop": stop,
    "a message": send_interrupting_message,
    "a steer, then a stop": steer_then_stop,
    "a stop in another task": stop_in_other_task,
    "a stop in another thread": stop_in_thread,
    "the agent is closed": close_agent,
}
