"""People act, and the gateway is killed: after some seconds, in a bad moment, or before it is up."""

import asyncio
import random
import threading
import time
from collections.abc import Callable

from tests.gateway_kills.environment import World
from tests.gateway_kills.kill_points import MOMENTS
from tests.gateway_kills.person import Pace, live
from tests.gateway_kills.quiesce import holding, rest
from tests.waiting import until

UNCONFIRMED_EACH = 2.5  # things that a person has written and that are not taken; then all wait
TRAP_SHARE = 0.6  # of the kills wait for a moment
KILL_POINT_SECONDS = 5.0
CONNECT_SECONDS = 180.0
ROUNDS = 5


async def run_load(world: World, tell: Callable[[str], None]) -> None:
    """Have all people act while the gateway is killed; then let it come to rest."""
    plan = world.plan
    chance = random.Random(plan.seed + 1)
    pace = Pace(world.book, plan.messages, len(world.people) / plan.per_second, plan.seed + 2)
    await world.gateway.start()
    await _at_work(world)
    lasting = asyncio.get_running_loop().call_later(min(plan.seconds, threading.TIMEOUT_MAX), pace.end)
    acting = [asyncio.create_task(live(person, pace)) for person in world.people]
    watching = asyncio.create_task(_watch(world, pace))
    try:
        while not pace.is_over:
            for task in acting:
                if task.done() and not pace.is_over:
                    task.result()  # a person who fell out of the play: the fault is ours
            await asyncio.sleep(chance.uniform(0.3, 1.7) * plan.kill_seconds)
            if chance.random() < TRAP_SHARE:
                await world.kill_point.set(chance.choice(MOMENTS), world.gateway.strike, KILL_POINT_SECONDS)
            await world.gateway.kill()
            tell(f"{len(world.book.written)} messages, {world.gateway.kills} kills, {world.backlog} not yet taken")
            if chance.random() < 0.2:  # one more, before it is up
                starting = asyncio.create_task(world.gateway.start())
                await asyncio.wait([starting], timeout=chance.uniform(0.2, 2.0))
                await world.gateway.kill()
                starting.cancel()
                await asyncio.gather(starting, return_exceptions=True)
            await world.gateway.start()
            await _at_work(world)
        await asyncio.gather(*acting)
    finally:
        lasting.cancel()
        for task in (*acting, watching):
            task.cancel()
        await asyncio.gather(*acting, watching, return_exceptions=True)
    tell(f"{len(world.book.written)} messages written; waiting until all is dealt with")
    world.telegram.is_calm = world.slack.is_calm = world.discord.is_calm = world.programs.is_calm = True
    await rest(world, tell)
    for session in world.chats:
        await world.chats[session].greet()
    tell("a last word in each chat")
    await rest(world, tell)
    for _ in range(ROUNDS):  # what was held may have asked something, been stopped, and be held again
        for session in await holding(world):
            await world.chats[session].greet()
        await rest(world, tell)


async def _at_work(world: World) -> None:
    """Return when the gateway has connected everywhere: on a busy machine that takes its time."""
    polls = world.telegram.pollers
    began = time.monotonic()
    telegram, gateway = world.telegram, world.discord.gateway
    await until(
        lambda: telegram.pollers > polls and bool(world.slack.sockets),
        seconds=CONNECT_SECONDS,
        shows=lambda: (telegram.pollers, world.slack.sockets),
        changed=telegram.changed,
    )
    await until(lambda: gateway.is_ready, seconds=CONNECT_SECONDS, changed=gateway.changed)
    # Before, Discord knows nobody to whom it could replay what is said.
    await until((world.home / "discord.json").exists, seconds=CONNECT_SECONDS)
    world.connect_seconds.append(time.monotonic() - began)


async def _watch(world: World, pace: Pace) -> None:
    """Hold the people while too much of what they wrote is not taken."""
    while True:
        if world.backlog > UNCONFIRMED_EACH * len(world.people):
            pace.has_room.clear()
        else:
            pace.has_room.set()
        await asyncio.sleep(0.05)
