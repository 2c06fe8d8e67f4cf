"""/reset is a boundary: it ends everything that belongs to the conversation, and lists it."""

from collections.abc import Sequence
from pathlib import Path

import hark
from hark.protocol.events import ReceiptChanged
from hark.protocol.messages import UserMessage
from hark.protocol.outcomes import Completed
from hark.protocol.provider import CallChunk, Request
from hark.providers.scripted import Hang, ScriptedProvider
from hark.tools.notes.todo import read_items, todo_file
from tests.app.slash.test_command_table import ObservedSession, observed_session
from tests.waiting import until


def call(number: int, name: str, arguments: str) -> CallChunk:
    return CallChunk(number, f"c{number}", name, arguments)


def user_texts(request: Request) -> list[str]:
    return [message.text for message in request.messages if isinstance(message, UserMessage)]


def withdrawn(observed: ObservedSession) -> Sequence[str]:
    receipts = [event.receipt for event in observed.events if isinstance(event, ReceiptChanged)]
    return [receipt.text or "" for receipt in receipts if receipt.state == "withdrawn"]


async def test_reset_ends_the_turn_queue_grants_modes_todo_and_background_processes(tmp_path: Path) -> None:
    hang = Hang()
    start = [
        call(0, "todo", '{"items": [{"text": "one", "status": "doing"}]}'),
        call(1, "process", '{"action": "start", "name": "server", "command": "sleep 600"}'),
        call(2, "process", '{"action": "start", "name": "kept", "command": "sleep 600"}'),
    ]
    async with observed_session(tmp_path, [start, ["a", hang], ["fresh"]]) as (observed, [provider]):
        session = observed.session
        await session.say("/mode all")
        await session.say("/busy queue")
        await session.say("work")
        await hang.reached.wait()
        await session.say("later", "queue")
        server, kept = session.services.background.list_processes("demo")
        await session.say("/reset keep unknown")
        assert "Running processes: server, kept." in await observed.wait_for_notice("reset")
        assert not hang.closed.is_set()
        await session.say("/reset keep kept")
        line = await observed.wait_for_notice("reset", 2)
        assert line == (
            "Conversation cleared. Ended: the running turn, 1 queued message, mode all, delivery queue, server, to-do "
            "list. Still running: kept. /undo reset restores it."
        )
        assert "\n" not in line
        assert not server.is_running
        assert kept.is_running
        assert withdrawn(observed) == ["later"]
        assert not read_items(todo_file(tmp_path, "demo"))
        assert (await session.status()).mode == "auto"
        assert session.delivery == "interrupt"
        assert await observed.say_and_wait("second") == Completed("fresh")
    assert user_texts(provider.requests[-1]) == ["second"]


async def test_a_session_grant_does_not_survive_a_reset(tmp_path: Path) -> None:
    def edit(number: int) -> list[CallChunk]:
        return [call(number, "write", f'{{"path": "f{number}", "content": "x"}}')]

    async with observed_session(tmp_path, [edit(1), edit(2), ["done"], edit(3), ["end"]]) as (observed, _):
        session = observed.session
        await session.say("/mode ask")
        await session.say("write")
        await observed.until(lambda: bool(session.proxy.open_questions))
        await session.say("/approve session")
        assert await session.idle() == Completed("done")  # the second call needed no approval
        await session.say("/reset")
        assert "1 grant" in await observed.wait_for_notice("reset")
        await session.say("/mode ask")
        await session.say("write again")
        await until(lambda: bool(session.proxy.open_questions))
        await session.interrupt()
    assert not (tmp_path / "f3").exists()


async def test_a_message_sent_right_after_a_reset_starts_in_the_new_conversation(tmp_path: Path) -> None:
    for round_number in range(20):
        hang = Hang()
        async with observed_session(tmp_path / str(round_number), [["old", hang], ["new"]]) as (observed, [provider]):
            await observed.session.say("first")
            await hang.reached.wait()
            await observed.session.say("queued", "queue")
            await observed.session.say("/reset")
            assert await observed.say_and_wait("second") == Completed("new")
        assert user_texts(provider.requests[-1]) == ["second"]


async def test_a_reset_can_be_undone_and_keeps_later_messages(tmp_path: Path) -> None:
    async with observed_session(tmp_path, [["a"], ["b"], ["c"]]) as (observed, [provider]):
        await observed.session.say("/undo reset")
        assert await observed.wait_for_notice("undo") == "No reset to undo."
        await observed.say_and_wait("first")
        await observed.session.say("/reset")
        await observed.say_and_wait("second")
        await observed.session.say("/undo reset")
        assert "restored" in await observed.wait_for_notice("undo", 2)
        await observed.say_and_wait("third")
    assert user_texts(provider.requests[-1]) == ["first", "second", "third"]


async def test_a_reset_survives_a_reopening_of_the_session(tmp_path: Path) -> None:
    provider = ScriptedProvider([["a"], ["b"]])
    for texts in (["first", "/mode all", "/reset"], ["second"]):
        async with hark.open(home=tmp_path, routes=[{"provider": provider}]) as agent:
            session = agent.session("demo")
            for text in texts:
                await session.say(text)
                await session.idle()
            mode = (await session.status()).mode
    assert mode == "auto"
    assert user_texts(provider.requests[-1]) == ["second"]
