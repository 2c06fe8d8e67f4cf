"""Tool calls over a connection to an MCP server: their results, and the effect of cancelling them."""

import asyncio
import json
import time
from pathlib import Path

import anyio
import pytest

from hark.mcp.sdk_requests import MAX_TEXT_CHARACTERS
from hark.protocol.messages import Attachment, Effect
from tests.mcp.mcp_fixture import AnsweringUser, running_servers, small_server_settings, wait_for_note
from tests.tools.fake_context import FakeContext
from tests.waiting import at_most, until


async def test_a_tool_call_returns_its_text(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        output = await fixture.call("one__echo", text="héllo")
    assert (output.text, output.is_error, output.effect) == ("héllo", False, Effect.COMPLETED)


async def test_tools_count_as_state_changing_unless_they_are_marked_read_only(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        changing = {tool.spec.name: tool.spec.is_changing for tool in fixture.servers.tools()}
    assert changing["one__echo"] is False
    assert changing["one__wait"] is True


async def test_images_resources_links_and_structured_content_are_returned(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        picture = await fixture.call("one__image")
        structure = await fixture.call("one__structure")
        link = await fixture.call("one__link")
    assert picture.attachments == (Attachment("image/png", data="aGVsbG8="),)
    assert picture.text == "[image/png, attached]\n[x://1]\ninside"
    assert structure.text == '{"a":1}'
    assert (link.text, link.is_error, link.effect) == ("x://2 - two", True, Effect.COMPLETED)


async def test_progress_is_shown_while_a_call_runs(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        await fixture.call("one__progress")
    assert fixture.context.shown == "1/2 step 1\n2/2 step 2\n"


async def test_a_cancelled_call_returns_immediately_and_is_cancelled_on_the_server(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running_servers(tmp_path, one=small_server_settings(env={"NOTES": str(notes)})) as fixture:
        pid = fixture.pid("one")
        started_at = 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fixture.call, "one__wait")
            await wait_for_note(notes, "call wait")
            started_at = time.perf_counter()
            tasks.cancel_scope.cancel()
        duration = time.perf_counter() - started_at
        await wait_for_note(notes, "cancelled")
        # The server also answers the cancelled call. That answer must not be used for another call.
        assert (await fixture.call("one__echo", text="next")).text == "next"
        assert fixture.pid("one") == pid
    assert duration < at_most(0.1)


async def test_cancelling_the_task_of_a_call_does_not_affect_other_calls(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running_servers(tmp_path, one=small_server_settings(env={"NOTES": str(notes)})) as fixture:
        task = asyncio.create_task(fixture.call("one__wait"))
        await wait_for_note(notes, "call wait")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await fixture.call("one__echo", text="next")).text == "next"


async def test_a_cancel_returns_immediately_when_the_server_does_not_read_and_its_pipe_is_full(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running_servers(tmp_path, one=small_server_settings(env={"NOTES": str(notes)})) as fixture:
        started_at = 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fixture.call, "one__deaf")
            await wait_for_note(notes, "call deaf")
            for _ in range(20):
                tasks.start_soon(lambda: fixture.call("one__echo", text="x" * 100_000))
            await asyncio.sleep(0)
            started_at = time.perf_counter()
            tasks.cancel_scope.cancel()
        duration = time.perf_counter() - started_at
    assert duration < at_most(0.5)


async def test_a_call_that_exceeds_its_time_limit_fails_and_is_cancelled_on_the_server(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with running_servers(
        tmp_path, one=small_server_settings(env={"NOTES": str(notes)}, timeout_seconds=2)
    ) as fixture:
        output = await fixture.call("one__wait")
        await wait_for_note(notes, "cancelled")
        assert (await fixture.call("one__echo", text="next")).text == "next"
    assert output.is_error
    assert output.effect is Effect.UNKNOWN
    assert "no answer within 2 s" in output.text


async def test_many_calls_run_in_parallel(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        met = await asyncio.gather(*(fixture.call("one__meet", count=50) for _ in range(50)))
        outputs = await asyncio.gather(*(fixture.call("one__echo", text=str(number)) for number in range(200)))
    assert {output.text for output in met} == {"met"}
    assert [output.text for output in outputs] == [str(number) for number in range(200)]


async def test_invalid_output_between_messages_is_logged_and_skipped(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        output = await fixture.call("one__garbage")
        assert "I am a greeting" in fixture.read_log("one")
    assert output.text == "after the garbage"


async def test_a_second_response_to_the_same_call_is_dropped(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        assert (await fixture.call("one__twice")).text == "first"
        assert (await fixture.call("one__echo", text="next")).text == "next"


async def test_an_invalid_response_fails_only_its_own_call(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        invalid = await fixture.call("one__odd")
        refused = await fixture.call("one__refuse")
        assert (await fixture.call("one__echo", text="next")).text == "next"
    assert invalid.is_error
    assert invalid.effect is Effect.UNKNOWN
    assert "the server sent invalid MCP" in invalid.text
    assert (refused.is_error, refused.effect) == (True, Effect.NOT_STARTED)
    assert "text is missing" in refused.text


async def test_arguments_that_cannot_be_encoded_as_json_fail_only_their_own_call(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        pid = fixture.pid("one")
        failed = [await fixture.call("one__echo", text=text) for text in ("\ud800", object())]
        assert (await fixture.call("one__echo", text="next")).text == "next"
        assert fixture.pid("one") == pid
    assert [(output.is_error, output.effect) for output in failed] == [(True, Effect.NOT_STARTED)] * 2


async def test_a_very_long_result_is_truncated(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        output = await fixture.call("one__big", size=10_000_000)
        assert (await fixture.call("one__echo", text="next")).text == "next"
    assert not output.is_error
    assert len(output.text) < MAX_TEXT_CHARACTERS + 100
    assert "9,900,000 characters omitted" in output.text


async def test_a_message_above_the_size_limit_fails_its_call_and_later_calls_succeed(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        output = await fixture.call("one__big", size=40_000_000)
        assert (await fixture.call("one__echo", text="next")).text == "next"
    assert output.is_error
    assert output.effect is Effect.UNKNOWN
    assert "more than 32 MB" in output.text


async def test_tools_are_listed_again_when_the_server_reports_a_change(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        assert "one__grown" not in [tool.spec.name for tool in fixture.servers.tools()]
        await fixture.call("one__grow")
        await until(lambda: "one__grown" in [tool.spec.name for tool in fixture.servers.tools()])
        assert (await fixture.call("one__grown")).text == "did grown"


async def test_a_paginated_tool_list_is_read_completely(tmp_path: Path) -> None:
    async with (
        running_servers(tmp_path / "1", one=small_server_settings("pages")) as paged,
        running_servers(tmp_path / "2", one=small_server_settings()) as unpaged,
    ):
        names = [tool.spec.name for tool in paged.servers.tools()]
        assert names == [tool.spec.name for tool in unpaged.servers.tools()]
    assert len(names) > 20


async def test_the_user_is_asked_for_the_fields_of_a_form_one_at_a_time(tmp_path: Path) -> None:
    user = AnsweringUser(tmp_path, "blue", "many", "3", "yes")
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        output = await fixture.call("one__ask", user)
    assert json.loads(output.text) == {"action": "accept", "content": {"colour": "blue", "count": 3, "sure": True}}
    assert [question.choices for question in user.questions] == [
        ("red", "blue", "(decline)"),
        ("(decline)",),
        ("(decline)",),
        ("yes", "no", "(skip)", "(decline)"),
    ]
    assert "enter a whole number" in user.questions[2].text


async def test_a_form_is_declined_when_the_user_declines_or_no_user_is_available(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        by_user = await fixture.call("one__ask", AnsweringUser(tmp_path, "(decline)"))
        without_user = await fixture.call("one__ask", FakeContext(tmp_path))
    assert json.loads(by_user.text) == {"action": "decline"}
    assert json.loads(without_user.text) == {"action": "decline"}


async def test_an_invalid_form_is_declined(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        output = await fixture.call("one__odd_form", AnsweringUser(tmp_path))
        assert "the server's form is invalid" in fixture.read_log("one")
    assert json.loads(output.text) == {"action": "decline"}


async def test_cancelling_a_call_withdraws_its_question_and_cancels_the_form(tmp_path: Path) -> None:
    notes, user = tmp_path / "notes", AnsweringUser(tmp_path)
    async with running_servers(tmp_path, one=small_server_settings(env={"NOTES": str(notes)})) as fixture:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fixture.call, "one__ask", user)
            await user.asked.wait()
            tasks.cancel_scope.cancel()
        assert user.withdrawn == 1
        assert '"action": "cancel"' in await wait_for_note(notes, "answer")
        assert (await fixture.call("one__echo", text="next")).text == "next"


async def test_a_form_is_declined_when_calls_from_two_sessions_are_running(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    mine, other = AnsweringUser(tmp_path, "blue", "1", "yes"), AnsweringUser(tmp_path, session="other")
    async with running_servers(tmp_path, one=small_server_settings(env={"NOTES": str(notes)})) as fixture:
        waiting_call = asyncio.create_task(fixture.call("one__wait", other))
        await wait_for_note(notes, "call wait")
        output = await fixture.call("one__ask", mine)
        waiting_call.cancel()
    assert json.loads(output.text) == {"action": "decline"}
    assert mine.questions == other.questions == []


async def test_the_workspace_is_listed_as_an_mcp_root_and_sampling_is_refused(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        roots = await fixture.call("one__roots")
        refusal = await fixture.call("one__sample")
    assert json.loads(roots.text)["roots"][0]["uri"] == tmp_path.as_uri()
    assert "not supported" in json.loads(refusal.text)["message"]


async def test_log_messages_from_a_server_are_written_to_its_log(tmp_path: Path) -> None:
    async with running_servers(tmp_path, one=small_server_settings()) as fixture:
        await fixture.call("one__log")
        await until(lambda: "info: a log message" in fixture.read_log("one"))
