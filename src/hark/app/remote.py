"""`hark send`, `stop` and `queue`: commands to a session, whichever process owns it."""

import argparse
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from hark.app import config
from hark.app.caller import Caller
from hark.app.clock import SystemClock
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.protocol.commands import Delivery, Edit, Interrupt, Move, QueueCommand, Say, Withdraw
from hark.protocol.store import Store
from hark.store.sqlite import SqliteStore

_CLOCK = SystemClock()


@asynccontextmanager
async def opened_store() -> AsyncGenerator[Store]:
    """The home's store, for a short visit."""
    store = await SqliteStore.open(config.home_directory() / "hark.db", f"{os.getpid()}-{_CLOCK.new_id()}", _CLOCK)
    try:
        yield store
    finally:
        await store.close()


async def send(options: argparse.Namespace) -> int:
    """Put a message into a session and print its receipt."""
    settings = config.load(config.home_directory(), config.workspace())
    delivery = Delivery(options.delivery) if options.delivery else settings.delivery.default
    async with opened_store() as store:
        receipt = await Caller(options.session, store).say(Say(options.id or _CLOCK.new_id(), options.text, delivery))
    _print(receipt)
    return COMPLETED


async def stop(options: argparse.Namespace) -> int:
    """Stop what runs, in one session or in all."""
    if bool(options.session) == options.all:
        sys.stderr.write("hark: say which session to stop, or --all\n")
        return BAD_USAGE
    async with opened_store() as store:
        names = [options.session]
        if options.all:
            names = [line.session for line in await store.journal.sessions() if line.summary.is_open]
        for name in names:
            settled = await Caller(name, store).interrupt(Interrupt(_CLOCK.new_id(), "user"))
            nothing = {"turn": None, "outcome": None}
            _print({"session": name, **(msgspec.to_builtins(settled) if settled else nothing)})
    return COMPLETED


async def queue(options: argparse.Namespace) -> int:
    """List what waits, or change it."""
    async with opened_store() as store:
        caller = Caller(options.session, store)
        if options.action == "list":
            _print({"queue": await caller.queue()})
            return COMPLETED
        refusal = await caller.change(_queue_command(options))
    if refusal is None:
        return COMPLETED
    sys.stderr.write(f"hark: {refusal.message}\n")
    return FAILED


def _queue_command(options: argparse.Namespace) -> QueueCommand:
    name, message, value = _CLOCK.new_id(), options.message, options.value
    if not message:
        raise ValueError(f"say which message to {options.action}: hark queue SESSION list shows their ids")
    match options.action:
        case "edit" if value:
            return Edit(name, message, value)
        case "move" if value and value.isdecimal():
            return Move(name, message, int(value))
        case "withdraw":
            return Withdraw(name, message)
        case "edit":
            raise ValueError("say the new text: hark queue SESSION edit ID TEXT")
        case _:
            raise ValueError("say the new position, from 1: hark queue SESSION move ID POSITION")


def _print(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
