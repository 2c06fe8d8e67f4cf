"""Calls over a connection: what comes back, and what a cut leaves behind."""

import asyncio
import json
import time
from pathlib import Path

import anyio
import pytest

from hark.mcp.sdk_requests import TEXT_CHARACTERS
from hark.protocol.messages import Attachment, Effect
from tests.mcp.mcp_fixture import Person, noted, running, small
from tests.tools.context import FakeContext
from tests.waiting import at_most, until


async def test_a_tool_is_called_and_its_text_comes_back(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        output = await world.call("one__echo", text="héllo")
    assert (output.text, output.is_error, output.effect) == ("héllo", False, Effect.COMPLETED)


async def test_only_a_tool_that_says_it_only_reads_is_known_as_reading(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        changing = {tool.spec.name: tool.spec.is_changing for tool in world.servers.tools()}
    assert changing["one__echo"] is False
    assert changing["one__wait"] is True


async def test_pictures_resources_links_and_structure_come_back(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        picture = await world.call("one__image")
        structure = await world.call("one__structure")
        link = await world.call("one__link")
    assert picture.attachments == (Attachment("image/png", data="aGVsbG8="),)
    assert picture.text == "[image/png, attached]\n[x://1]\ninside"
    assert structure.text == '{"a":1}'
    assert (link.text, link.is_error, link.effect) == ("x://2 - two", True, Effect.COMPLETED)


async def test_progress_is_shown_while_the_call_runs(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        await world.call("one__progress")
    assert world.context.shown == "1/2 step 1\n2/2 step 2\n"


async def test_a_cut_call_returns_at_once_and_the_server_is_told_and_stays_usable(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running(tmp_path, one=small(env={"NOTES": str(notes)})) as world:
        pid = world.pid("one")
        began = 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.call, "one__wait")
            await noted(notes, "call wait")
            began = time.perf_counter()
            tasks.cancel_scope.cancel()
        took = time.perf_counter() - began
        await noted(notes, "cancelled")
        # The server answers what was cancelled all the same: nobody may take that for another's answer.
        assert (await world.call("one__echo", text="next")).text == "next"
        assert world.pid("one") == pid
    assert took < at_most(0.1)


async def test_a_call_cut_by_the_loop_itself_harms_no_other(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running(tmp_path, one=small(env={"NOTES": str(notes)})) as world:
        task = asyncio.create_task(world.call("one__wait"))
        await noted(notes, "call wait")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await world.call("one__echo", text="next")).text == "next"


async def test_a_cut_returns_at_once_when_the_server_reads_nothing_and_its_pipe_is_full(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running(tmp_path, one=small(env={"NOTES": str(notes)})) as world:
        began = 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.call, "one__deaf")
            await noted(notes, "call deaf")
            for _ in range(20):
                tasks.start_soon(lambda: world.call("one__echo", text="x" * 100_000))
            await asyncio.sleep(0)
            began = time.perf_counter()
            tasks.cancel_scope.cancel()
        took = time.perf_counter() - began
    assert took < at_most(0.5)


async def test_a_call_that_takes_too_long_is_given_up_and_the_server_is_told(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running(tmp_path, one=small(env={"NOTES": str(notes)}, timeout_seconds=2)) as world:
        output = await world.call("one__wait")
        await noted(notes, "cancelled")
        assert (await world.call("one__echo", text="next")).text == "next"
    assert output.is_error
    assert output.effect is Effect.UNKNOWN
    assert "did not answer within 2 s" in output.text


async def test_many_calls_run_side_by_side(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        outputs = await asyncio.gather(*(world.call("one__echo", text=str(number)) for number in range(200)))
    assert [output.text for output in outputs] == [str(number) for number in range(200)]


async def test_garbage_between_messages_is_logged_and_passed_over(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        output = await world.call("one__garbage")
        assert "I am a greeting" in world.log("one")
    assert output.text == "after the garbage"


async def test_the_second_answer_to_one_call_is_dropped(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        assert (await world.call("one__twice")).text == "first"
        assert (await world.call("one__echo", text="next")).text == "next"


async def test_an_answer_that_is_not_valid_is_an_error_of_that_call_alone(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        odd = await world.call("one__odd")
        refused = await world.call("one__refuse")
        assert (await world.call("one__echo", text="next")).text == "next"
    assert odd.is_error
    assert odd.effect is Effect.UNKNOWN
    assert "not valid MCP" in odd.text
    assert (refused.is_error, refused.effect) == (True, Effect.NOT_STARTED)
    assert "text is missing" in refused.text


async def test_arguments_that_are_no_json_fail_that_call_alone(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        pid = world.pid("one")
        odd = [await world.call("one__echo", text=text) for text in ("\ud800", object())]
        assert (await world.call("one__echo", text="next")).text == "next"
        assert world.pid("one") == pid
    assert [(output.is_error, output.effect) for output in odd] == [(True, Effect.NOT_STARTED)] * 2


async def test_a_very_long_line_is_read_and_its_text_is_bounded(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        output = await world.call("one__big", size=10_000_000)
        assert (await world.call("one__echo", text="next")).text == "next"
    assert not output.is_error
    assert len(output.text) < TEXT_CHARACTERS + 100
    assert "9,900,000 characters cut here" in output.text


async def test_a_line_that_never_ends_costs_the_connection_and_no_more(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        output = await world.call("one__big", size=40_000_000)
        assert (await world.call("one__echo", text="next")).text == "next"
    assert output.is_error
    assert output.effect is Effect.UNKNOWN
    assert "more than 32 MB" in output.text


async def test_a_list_that_changed_is_read_again(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        assert "one__grown" not in [tool.spec.name for tool in world.servers.tools()]
        await world.call("one__grow")
        await until(lambda: "one__grown" in [tool.spec.name for tool in world.servers.tools()])
        assert (await world.call("one__grown")).text == "did grown"


async def test_a_list_in_pages_is_read_to_its_end(tmp_path: Path) -> None:
    async with running(tmp_path / "1", one=small("pages")) as paged, running(tmp_path / "2", one=small()) as whole:
        names = [tool.spec.name for tool in paged.servers.tools()]
        assert names == [tool.spec.name for tool in whole.servers.tools()]
    assert len(names) > 20


async def test_a_form_is_asked_field_by_field(tmp_path: Path) -> None:
    person = Person(tmp_path, "blue", "many", "3", "yes")
    async with running(tmp_path, one=small()) as world:
        output = await world.call("one__ask", person)
    assert json.loads(output.text) == {"action": "accept", "content": {"colour": "blue", "count": 3, "sure": True}}
    assert [question.choices for question in person.questions] == [
        ("red", "blue", "(decline)"),
        ("(decline)",),
        ("(decline)",),
        ("yes", "no", "(leave out)", "(decline)"),
    ]
    assert "a whole number is wanted" in person.questions[2].text


async def test_a_form_is_declined_by_a_person_and_when_nobody_is_there(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        by_person = await world.call("one__ask", Person(tmp_path, "(decline)"))
        by_nobody = await world.call("one__ask", FakeContext(tmp_path))
    assert json.loads(by_person.text) == {"action": "decline"}
    assert json.loads(by_nobody.text) == {"action": "decline"}


async def test_a_form_that_cannot_be_read_is_declined(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        output = await world.call("one__odd_form", Person(tmp_path))
        assert "can't be read" in world.log("one")
    assert json.loads(output.text) == {"action": "decline"}


async def test_a_cut_withdraws_the_question_and_the_server_hears_of_it(tmp_path: Path) -> None:
    notes, person = tmp_path / "notes", Person(tmp_path)
    async with running(tmp_path, one=small(env={"NOTES": str(notes)})) as world:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.call, "one__ask", person)
            await person.asked.wait()
            tasks.cancel_scope.cancel()
        assert person.withdrawn == 1
        assert '"action": "cancel"' in await noted(notes, "answer")
        assert (await world.call("one__echo", text="next")).text == "next"


async def test_a_form_goes_to_nobody_when_calls_of_two_sessions_are_under_way(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    mine, other = Person(tmp_path, "blue", "1", "yes"), Person(tmp_path, session="other")
    async with running(tmp_path, one=small(env={"NOTES": str(notes)})) as world:
        waiting = asyncio.create_task(world.call("one__wait", other))
        await noted(notes, "call wait")
        output = await world.call("one__ask", mine)
        waiting.cancel()
    assert json.loads(output.text) == {"action": "decline"}
    assert mine.questions == other.questions == []


async def test_the_workspace_is_the_root_and_sampling_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        roots = await world.call("one__roots")
        refusal = await world.call("one__sample")
    assert json.loads(roots.text)["roots"][0]["uri"] == tmp_path.as_uri()
    assert "not supported" in json.loads(refusal.text)["message"]


async def test_what_a_server_logs_goes_to_its_log(tmp_path: Path) -> None:
    async with running(tmp_path, one=small()) as world:
        await world.call("one__log")
        await until(lambda: "info: a word for the log" in world.log("one"))
