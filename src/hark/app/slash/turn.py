"""Slash commands for the running turn and the queue."""

from hark.app.sessions.handle import SessionHandle
from hark.app.slash.command_table import QUEUE_CHANGES, receipt_text
from hark.protocol.commands import Delivery, PauseTurn
from hark.protocol.meaning import NO_TURN
from hark.protocol.names import short_turn_name
from hark.protocol.receipts import QueueItem
from hark.protocol.rules import ApprovalMode
from hark.protocol.tool import QuestionKind
from hark.text.graphemes import shorten


async def stop(session: SessionHandle, arguments: str) -> str:
    """Stop the running turn, its children and all side questions. With `all`, also stop background processes."""
    has_stopped_aside = session.stop_side_questions()
    children = [run.child.id for run in session.services.work.children.detached(session.id)]
    settled = await session.interrupt("user")
    ended = await session.services.work.end_all(session.id) if arguments == "all" else []
    if names := list(dict.fromkeys([*children, *ended])):
        return f"Stopped {', '.join(names)}."
    if settled is None and has_stopped_aside:
        return "Stopped the side question. " + NO_TURN
    return f"Stopped in {settled.timings.settle:.1f} ms" if settled else NO_TURN


async def pause(session: SessionHandle, arguments: str) -> str:
    """Pause the running turn after its current step, or hold the queue if no turn is running."""
    running = session.running_turn()
    refusal = await session.proxy.change(PauseTurn(session.new_id()))
    if refusal:
        return refusal.message
    if running is None:
        return "The queue is on hold. Your next message releases it."
    return f"{short_turn_name(running.turn)} pauses after this step. /continue resumes it."


async def btw(session: SessionHandle, arguments: str) -> str:
    """Ask the model a side question next to the running turn, or stop the open side questions."""
    if not arguments:
        return "Use /btw QUESTION, or /btw stop."
    if arguments == "stop":
        return "Stopped the side question." if session.stop_side_questions() else "No side question is open."
    return f"btw {_shorten(arguments)}\n\n{await session.proxy.ask_aside(arguments)}"


async def queue(session: SessionHandle, arguments: str) -> str:
    """Show the queue, change it, or add a message to it."""
    number, _, rest = arguments.partition(" ")
    action, _, detail = rest.strip().partition(" ")
    queued = await session.queue()
    if number.isdecimal() and action in QUEUE_CHANGES:
        if not 1 <= int(number) <= len(queued):
            return f"No message {number} in the queue ({len(queued)} queued)."
        return await _change_queue(session, queued[int(number) - 1], action, detail.strip())
    if arguments:
        return receipt_text(await session.say(arguments, Delivery.QUEUE))
    rows = [f"{position}. [{item.state}] {_shorten(item.text)}" for position, item in enumerate(queued, 1)]
    return "\n".join(rows) or "The queue is empty."


async def steer(session: SessionHandle, arguments: str) -> str:
    """Steer the running turn with a message."""
    if not arguments:
        return "Use /steer TEXT."
    return receipt_text(await session.say(arguments, Delivery.STEER))


async def busy(session: SessionHandle, arguments: str) -> str:
    """Show or set the effect of a message on a running turn."""
    if arguments and arguments not in tuple(Delivery):
        return f"No delivery named {arguments!r}. Choose one of: {', '.join(Delivery)}."
    if arguments:
        session.choose_delivery(Delivery(arguments))
    return f"Messages during a turn: {session.delivery}."


async def approve(session: SessionHandle, arguments: str) -> str:
    """Approve the open request."""
    if arguments not in ("", "once", "session", "always"):
        return "Use /approve (once), /approve session or /approve always."
    return await _answer(session, arguments or "yes")


async def deny(session: SessionHandle, arguments: str) -> str:
    """Decline the open request. `arguments` is the reason that the model sees."""
    return await _answer(session, arguments or "no")


async def mode(session: SessionHandle, arguments: str) -> str:
    """Show or set when the user is asked for approval."""
    if arguments and arguments not in tuple(ApprovalMode):
        return f"No mode named {arguments!r}. Choose one of: {', '.join(ApprovalMode)}."
    if arguments and (refusal := await session.choose_mode(ApprovalMode(arguments))):
        return refusal.message
    current = (await session.status()).mode
    meaning = {
        ApprovalMode.ASK: "you are asked before anything that makes changes",
        ApprovalMode.AUTO: "you are asked before calls that are dangerous or leave the workspace",
        ApprovalMode.ALL: "you are never asked",
    }
    return f"{current}: {meaning[current]}."


async def _answer(session: SessionHandle, text: str) -> str:
    """Answer the oldest open approval."""
    questions = session.proxy.open_question_events
    asked = next((asked for asked in questions if asked.kind is QuestionKind.APPROVAL), None)
    if asked is None:
        return "Nothing to approve."
    if text in ("session", "always") and text not in asked.choices:
        return "This call can only be approved once. Use /approve or /deny."
    refusal = await session.answer(asked.question, text)
    return refusal.message if refusal else f"answered: {text}"


async def _change_queue(session: SessionHandle, item: QueueItem, action: str, detail: str) -> str:
    match action:
        case "drop":
            refusal = await session.withdraw(item.id)
            done = f"withdrawn: {_shorten(item.text)}"
        case "to" if detail.isdecimal():
            refusal = await session.move(item.id, int(detail))
            done = f"moved to {detail}: {_shorten(item.text)}"
        case "edit" if detail:
            refusal = await session.edit(item.id, detail)
            done = f"edited: {_shorten(detail)}"
        case "now":
            return await _send_now(session, item)
        case _:
            return "Incomplete command. Use /queue N to M or /queue N edit TEXT."
    return refusal.message if refusal else done


async def _send_now(session: SessionHandle, item: QueueItem) -> str:
    """Send a queued message now, so that it interrupts the running turn."""
    queued = session.proxy.state.find_queued(item.id)
    attachments = queued.message.attachments if queued else ()
    author = queued.message.author if queued else ""
    refusal = await session.withdraw(item.id)
    if refusal:
        return refusal.message
    return receipt_text(await session.say(item.text, Delivery.INTERRUPT, author=author, attachments=attachments))


def _shorten(text: str) -> str:
    return shorten(" ".join(text.split()), 80)
