"""`hark sessions`, `trace` and `config`: a look at what is there."""

import argparse
import sys
from datetime import datetime

import msgspec

from hark.app import config as settings
from hark.app.remote import opened_store
from hark.app.secrets import without_secrets
from hark.app.shutdown import BAD_USAGE, COMPLETED, FAILED
from hark.engine.state import SessionState
from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage
from hark.protocol.records import TurnEnded
from hark.protocol.store import Store

TRACE_COLUMNS = 50


async def sessions(options: argparse.Namespace) -> int:
    """List, show, search, export or delete sessions."""
    async with opened_store() as store:
        if options.action == "list":
            return await _list(store, as_json=options.json)
        if not options.value:
            sys.stderr.write(f"hark: say what to {options.action}: hark sessions {options.action} SESSION\n")
            return BAD_USAGE
        if options.action == "search":
            return await _search(store, options.value)
        if options.action == "delete":
            if await store.journal.delete(options.value):
                return COMPLETED
            return _unknown(options.value)
        return await _show(store, options.value, as_json=options.json)


async def _list(store: Store, *, as_json: bool) -> int:
    lines = await store.journal.sessions()
    if as_json:
        _print(msgspec.json.encode({"sessions": lines}).decode())
        return COMPLETED
    for line in lines:
        when = datetime.fromtimestamp(line.summary.updated_at).strftime("%Y-%m-%d %H:%M")
        _print(f"{line.session:24}  {when}  {line.summary.turns:4} turns  {line.summary.title}")
    return COMPLETED


async def _search(store: Store, words: str) -> int:
    """Print the sessions in which all the words stand, with the first place of each."""
    wanted = words.lower().split()
    for line in await store.journal.sessions():
        state = await load(store, line.session)
        texts = [message.text for message in state.transcript.messages]
        whole = "\n".join(texts).lower()
        if all(word in whole for word in wanted):
            first = next((text for text in texts if wanted[0] in text.lower()), "")
            _print(f"{line.session:24}  {first.strip()[:80]!r}")
    return COMPLETED


async def _show(store: Store, session: str, *, as_json: bool) -> int:
    state = await load(store, session)
    if not state.length:
        return _unknown(session)
    if as_json:
        _print(msgspec.json.encode({"messages": transcript(state)}).decode())
        return COMPLETED
    _print(f"# {state.title or session}\n")
    for message in state.transcript.messages:
        _print(_markdown(message))
    return COMPLETED


def transcript(state: SessionState) -> list[dict[str, object]]:
    """Return the transcript as programs read it."""
    rows: list[dict[str, object]] = []
    for message, turn in zip(state.transcript.messages, state.transcript.turns, strict=True):
        rows.append({**msgspec.to_builtins(message), "turn": turn})
    return rows


def _markdown(message: Message) -> str:
    match message:
        case UserMessage():
            return f"**{message.author or 'you'}:** {message.text}\n"
        case AssistantMessage():
            calls = "".join(f"\n`{call.name} {call.arguments}`" for call in message.calls)
            return f"**hark:** {message.text}{' …' if message.is_partial else ''}{calls}\n"
        case CallResult():
            return f"> {message.name} ({message.effect}): {message.text[:500]}\n"
        case Note():
            return f"_{message.text}_\n"


async def load(store: Store, session: str) -> SessionState:
    """Return what the journal says of a session."""
    state = SessionState()
    for record in await store.journal.read(session):
        state.apply(record)
    return state


async def trace(options: argparse.Namespace) -> int:
    """Show a turn's timeline: what ran when, and where the interrupt fell."""
    async with opened_store() as store:
        ends = [record for record in await store.journal.read(options.session) if isinstance(record, TurnEnded)]
    if options.turn:
        ends = [end for end in ends if end.turn == options.turn]
    if not ends:
        return _unknown(options.turn or options.session)
    timings = ends[-1].timings
    scale = TRACE_COLUMNS / max(timings.total, 0.001)
    _print(f"{ends[-1].turn}: {timings.total:.1f} ms, model {timings.model:.1f}, tools {timings.tools:.1f}")
    for span in timings.spans:
        bar = " " * int(span.start * scale) + "█" * max(1, round((span.end - span.start) * scale))
        _print(f"{span.kind:8} {span.name[:16]:16} |{bar:{TRACE_COLUMNS + 1}}| {span.end - span.start:9.1f} ms")
    if timings.interrupted_at is not None:
        mark = " " * int(timings.interrupted_at * scale) + "▲"
        _print(f"{'interrupt':25} |{mark:{TRACE_COLUMNS + 1}}| settled in {timings.settle:.1f} ms")
    return COMPLETED


async def config(options: argparse.Namespace) -> int:
    """Show, check or find the settings. Keys are never printed."""
    home = settings.home_directory()
    if options.action == "path":
        _print(str(home / "config.toml"))
        return COMPLETED
    loaded = settings.load(home, settings.workspace())
    if options.action == "show":
        _print(msgspec.json.format(msgspec.json.encode(without_secrets(msgspec.to_builtins(loaded)))).decode())
    else:
        _print(f"{home / 'config.toml'}: the settings are right")
    return COMPLETED


def _unknown(name: str) -> int:
    sys.stderr.write(f"hark: there is no {name}; `hark sessions` lists what there is\n")
    return FAILED


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
