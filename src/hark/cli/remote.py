"""`hark send`, `stop` and `queue`: commands to a session, whichever process owns it."""

import argparse
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from hark.app.clock import SystemClock
from hark.app.sessions.remote_session import Caller
from hark.app.settings import config
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.app.slash.meaning import meaning_of
from hark.cli.sent_command import carry_out, stopped
from hark.protocol.commands import Delivery, Edit, Move, QueueCommand, Say, Withdraw
from hark.protocol.meaning import CommandMeaning, MessageMeaning, StopMeaning
from hark.protocol.receipts import ReceiptState
from hark.protocol.store import Store
from hark.store.sqlite import SqliteStore

FOR_LATER = "The gateway is stopping. The message is kept, and runs when it is started again."
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
    """Put a message into a session and print its receipt. One that is a slash command is that command."""
    settings = config.load(config.home_directory(), config.workspace())
    text, delivery = options.text, Delivery(options.delivery) if options.delivery else settings.delivery.default
    async with opened_store() as store:
        caller = Caller(options.session, store)
        meaning = meaning_of(text)
        if isinstance(meaning, CommandMeaning | StopMeaning):
            _print(await carry_out(caller, options.session, meaning))
            return COMPLETED
        prefix = meaning.delivery if isinstance(meaning, MessageMeaning) else None
        receipt = await caller.say(Say(options.id or _CLOCK.new_id(), meaning.text, prefix or delivery))
        is_for_later = receipt.state is ReceiptState.QUEUED and await caller.is_draining()
    _print(receipt)
    if is_for_later:
        sys.stderr.write(f"hark: {FOR_LATER}\n")
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
            _print(await stopped(Caller(name, store), name))
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
