"""Users act while the gateway is killed: after some seconds, at a critical event, or during startup."""

import asyncio
import random
import threading
import time
from collections.abc import Callable

from tests.gateway_kills.environment import GatewayEnvironment
from tests.gateway_kills.kill_points import MOMENTS
from tests.gateway_kills.quiesce import sessions_with_queue, wait_until_idle
from tests.gateway_kills.user import Pacing, run_user
from tests.waiting import until

MAX_UNCONFIRMED_PER_USER = 2.5  # messages that are not accepted yet; above this, all users wait
KILL_POINT_SHARE = 0.6  # the share of kills that wait for an event
KILL_POINT_SECONDS = 5.0
CONNECT_SECONDS = 180.0
RELEASE_ROUNDS = 5


async def run_load(environment: GatewayEnvironment, log: Callable[[str], None]) -> None:
    """Run all simulated users while the gateway is killed repeatedly, then wait until all work is done."""
    plan = environment.plan
    chance = random.Random(plan.seed + 1)
    pacing = Pacing(environment.expectations, plan.messages, len(environment.users) / plan.per_second, plan.seed + 2)
    await environment.gateway.start()
    await _wait_until_connected(environment)
    ending = asyncio.get_running_loop().call_later(min(plan.seconds, threading.TIMEOUT_MAX), pacing.stop)
    acting = [asyncio.create_task(run_user(person, pacing)) for person in environment.users]
    watching = asyncio.create_task(_limit_backlog(environment, pacing))
    try:
        while not pacing.is_over:
            for task in acting:
                if task.done() and not pacing.is_over:
                    task.result()  # a user's task failed: a bug in the test
            await asyncio.sleep(chance.uniform(0.3, 1.7) * plan.kill_seconds)
            if chance.random() < KILL_POINT_SHARE:
                await environment.kill_point.arm(
                    chance.choice(MOMENTS), environment.gateway.kill_now, KILL_POINT_SECONDS
                )
            await environment.gateway.kill()
            counts = f"{len(environment.expectations.messages)} messages, {environment.gateway.kills} kills"
            log(f"{counts}, {environment.backlog} not yet accepted")
            if chance.random() < 0.2:  # one more kill, during startup
                starting = asyncio.create_task(environment.gateway.start())
                await asyncio.wait([starting], timeout=chance.uniform(0.2, 2.0))
                await environment.gateway.kill()
                starting.cancel()
                await asyncio.gather(starting, return_exceptions=True)
            await environment.gateway.start()
            await _wait_until_connected(environment)
        await asyncio.gather(*acting)
    finally:
        ending.cancel()
        for task in (*acting, watching):
            task.cancel()
        await asyncio.gather(*acting, watching, return_exceptions=True)
    log(f"{len(environment.expectations.messages)} messages sent; waiting until all are processed")
    environment.telegram.is_calm = environment.slack.is_calm = environment.discord.is_calm = (
        environment.programs.is_calm
    ) = True
    await wait_until_idle(environment, log)
    for session in environment.chats:
        await environment.chats[session].send_final_message()
    log("sent a final message to each chat")
    await wait_until_idle(environment, log)
    for _ in range(RELEASE_ROUNDS):  # a released turn may have asked, been stopped, and be held again
        for session in await sessions_with_queue(environment):
            await environment.chats[session].send_final_message()
        await wait_until_idle(environment, log)


async def _wait_until_connected(environment: GatewayEnvironment) -> None:
    """Wait until the gateway is connected to every platform, which takes a while on a busy machine."""
    polls = environment.telegram.pollers
    began = time.monotonic()
    telegram, gateway = environment.telegram, environment.discord.gateway
    await until(
        lambda: telegram.pollers > polls and bool(environment.slack.sockets),
        seconds=CONNECT_SECONDS,
        shows=lambda: (telegram.pollers, environment.slack.sockets),
        changed=telegram.changed,
    )
    await until(lambda: gateway.is_ready, seconds=CONNECT_SECONDS, changed=gateway.changed)
    # Before this, Discord has no session to which it could replay events.
    await until((environment.home / "discord.json").exists, seconds=CONNECT_SECONDS)
    environment.connect_seconds.append(time.monotonic() - began)


async def _limit_backlog(environment: GatewayEnvironment, pacing: Pacing) -> None:
    """Pause the users while too many of their messages have not been accepted."""
    while True:
        if environment.backlog > MAX_UNCONFIRMED_PER_USER * len(environment.users):
            pacing.has_room.clear()
        else:
            pacing.has_room.set()
        await asyncio.sleep(0.05)
