"""Slash commands about what runs and what waits."""

from hark.app.sessions.handle import SessionHandle
from hark.app.slash.table import QUEUE_CHANGES, told
from hark.protocol.commands import Delivery
from hark.protocol.meaning import NO_TURN
from hark.protocol.receipts import QueueItem
from hark.protocol.rules import ApprovalMode


async def stop(session: SessionHandle, words: str) -> str:
    """Stop what runs."""
    settled = await session.interrupt("user")
    return f"stopped in {settled.timings.settle:.1f} ms" if settled else NO_TURN


async def queue(session: SessionHandle, words: str) -> str:
    """Show the queue, change it, or put a message into it."""
    number, _, rest = words.partition(" ")
    action, _, detail = rest.strip().partition(" ")
    waiting = await session.queue()
    if number.isdecimal() and action in QUEUE_CHANGES:
        if not 1 <= int(number) <= len(waiting):
            return f"There is no message {number} in the queue; it has {len(waiting)}."
        return await _change(session, waiting[int(number) - 1], action, detail.strip())
    if words:
        return told(await session.say(words, Delivery.QUEUE))
    rows = [f"{place}. [{item.state}] {_short(item.text)}" for place, item in enumerate(waiting, 1)]
    return "\n".join(rows) or "Nothing waits."


async def steer(session: SessionHandle, words: str) -> str:
    """Add to what runs."""
    if not words:
        return "Say what to add: /steer TEXT"
    return told(await session.say(words, Delivery.STEER))


async def busy(session: SessionHandle, words: str) -> str:
    """Show or choose what a message does to a running turn."""
    if words and words not in tuple(Delivery):
        return f"There is no delivery {words!r}. There are: {', '.join(Delivery)}."
    if words:
        session.choose_delivery(Delivery(words))
    return f"A message while a turn runs: {session.delivery}."


async def approve(session: SessionHandle, words: str) -> str:
    """Allow what is asked."""
    if words not in ("", "once", "session", "always"):
        return "Say /approve for this time, /approve session or /approve always."
    return await _answer(session, words or "yes")


async def deny(session: SessionHandle, words: str) -> str:
    """Don't allow what is asked; the model is told why."""
    return await _answer(session, words or "no")


async def mode(session: SessionHandle, words: str) -> str:
    """Show or choose how often the person is asked."""
    if words and words not in tuple(ApprovalMode):
        return f"There is no mode {words!r}. There are: {', '.join(ApprovalMode)}."
    if words and (refusal := await session.choose_mode(ApprovalMode(words))):
        return refusal.message
    now = (await session.status()).mode
    meaning = {
        ApprovalMode.ASK: "you are asked before anything that changes something",
        ApprovalMode.AUTO: "you are asked before what is dangerous or leaves the workspace",
        ApprovalMode.ALL: "you are never asked",
    }
    return f"{now}: {meaning[now]}."


async def _answer(session: SessionHandle, text: str) -> str:
    questions = session.door.open_questions
    if not questions:
        return "Nothing is asked at present."
    refusal = await session.answer(questions[0], text)
    return refusal.message if refusal else f"answered: {text}"


async def _change(session: SessionHandle, item: QueueItem, action: str, detail: str) -> str:
    match action:
        case "drop":
            refusal = await session.withdraw(item.id)
            done = f"withdrawn: {_short(item.text)}"
        case "to" if detail.isdecimal():
            refusal = await session.move(item.id, int(detail))
            done = f"moved to {detail}: {_short(item.text)}"
        case "edit" if detail:
            refusal = await session.edit(item.id, detail)
            done = f"edited: {_short(detail)}"
        case "now":
            return await _send_now(session, item)
        case _:
            return f"Say more: /queue N {action} ..."
    return refusal.message if refusal else done


async def _send_now(session: SessionHandle, item: QueueItem) -> str:
    """Have a message that waits interrupt what runs."""
    waiting = session.door.state.waiting(item.id)
    attachments = waiting.message.attachments if waiting else ()
    author = waiting.message.author if waiting else ""
    refusal = await session.withdraw(item.id)
    if refusal:
        return refusal.message
    return told(await session.say(item.text, Delivery.INTERRUPT, author=author, attachments=attachments))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:79]}…"
