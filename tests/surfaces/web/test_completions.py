"""The OpenAI-compatible API, tested with OpenAI's own client where possible."""

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest

from hark.protocol.messages import Effect
from hark.protocol.provider import CallChunk, EndChunk
from tests.cli.command_line import gated, shell_call
from tests.fakes.models.behaviours import failing, hanging, reply, text, tokens
from tests.surfaces.web.web_fixture import WebFixture, run_web_server
from tests.waiting import at_most, until

PATH = "/v1/chat/completions"
HI = [{"role": "user", "content": "hi"}]


def openai_client(web: WebFixture) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="none", base_url=f"{web.base}/v1", max_retries=0)


async def test_a_completion_runs_a_turn_and_reports_its_usage(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["Hello", " there"])]) as web, openai_client(web) as client:
        done = await client.chat.completions.create(model="hark", messages=[{"role": "user", "content": "hi"}])
        assert done.choices[0].message.content == "Hello there"
        assert done.choices[0].finish_reason == "stop"
        assert done.usage is not None
        assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (10, 2)
        models = await client.models.list()
        assert [model.id for model in models.data] == ["hark", "main"]


async def test_a_completion_streams_its_reply(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [text(["Hello", " there"])]) as web, openai_client(web) as client:
        stream = await client.chat.completions.create(
            model="main",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello there"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 12
    assert len({chunk.id for chunk in chunks}) == 1


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_the_response_to_a_slash_command_contains_its_notice(tmp_path: Path, is_streamed: bool) -> None:
    async with run_web_server(tmp_path) as web:
        body = {"messages": [{"role": "user", "content": "/help me"}], "stream": is_streamed}
        status, _, reply = await web.fetch(PATH, "POST", json=body)
        assert status == 200
        assert "/reset" in reply
        assert '"finish_reason":"stop"' in reply
        assert web.model.requests == []


async def test_earlier_messages_in_the_request_become_the_history_of_a_new_session(tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I am Ada."},
        {"role": "assistant", "content": "Hello Ada."},
        {"role": "user", "content": [{"type": "text", "text": "Who am I?"}]},
    ]
    async with run_web_server(tmp_path, [text(["Ada"]), text(["again"])]) as web:
        status, body = await web.call("POST", PATH, {"messages": messages})
        assert (status, body["choices"][0]["message"]["content"]) == (200, "Ada")
        sent = web.model.requests[0].body["messages"]
        assert [(item["role"], item["content"]) for item in sent[2:]] == [
            ("user", "I am Ada."),
            ("assistant", "Hello Ada."),
            ("user", "Who am I?"),
        ]
        assert "Be brief." in sent[1]["content"]
        rows = await web.messages(body["hark"]["session"])
        assert [row["role"] for row in rows] == ["note", "user", "assistant", "user", "assistant"]
        await until(lambda: not web.agent.is_open(body["hark"]["session"]))
        _, other = await web.call("POST", PATH, {"messages": HI})
        assert other["hark"]["session"] != body["hark"]["session"]
        assert len(web.model.requests[1].body["messages"]) == 2


async def test_a_named_session_uses_its_own_history(tmp_path: Path) -> None:
    headers = {"X-Hark-Session": "mine"}
    async with run_web_server(tmp_path, [text(["one"]), text(["two"])]) as web:
        history = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes"}]
        await web.call("POST", PATH, {"messages": [*history, *HI]}, headers=headers)
        second_request = {"messages": [*history, *HI, {"role": "assistant", "content": "one"}, *HI]}
        await web.call("POST", PATH, second_request, headers=headers)
        texts = [row["text"] for row in await web.messages("mine")]
        assert texts == ["before", "yes", "hi", "one", "hi", "two"]
        status, body = await web.call("POST", PATH, {"messages": HI}, headers={"X-Hark-Session": "../x"})
        assert (status, body["error"]["code"]) == (400, "bad_name")


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_disconnect_interrupts_the_turn(tmp_path: Path, is_streamed: bool) -> None:
    async with run_web_server(tmp_path, [hanging(3)]) as web:
        body = {"messages": HI, "stream": is_streamed}
        request_task = asyncio.create_task(web.client.post(PATH, json=body, headers={"X-Hark-Session": "mine"}))
        exchange = await web.model.request(1)
        if is_streamed:
            response = await request_task
            await response.content.readline()
            response.close()
        else:
            request_task.cancel()
            await asyncio.wait([request_task])
        await asyncio.wait_for(exchange.disconnected.wait(), at_most(5))
        await web.idle("mine")
        end = web.agent.session("mine").proxy.state.last_end
        assert end is not None
        assert outcome_fields(end.outcome) == {"source": "the client disconnected"}


def outcome_fields(outcome: Any) -> dict[str, Any]:
    return {"source": outcome.source}


async def is_queue_empty(web: WebFixture) -> bool:
    return not (await web.call("GET", "/api/sessions/mine/queue"))[1]["queue"]


async def test_a_disconnect_withdraws_the_queued_message_without_stopping_the_running_turn(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with run_web_server(tmp_path, [gated(gate, "all of it")], delivery={"api": "queue"}) as web:
        await web.say("mine", "others' work")
        await web.model.request(1)
        async with web.events("mine") as events:
            body = {"messages": HI, "stream": True}
            response = await web.client.post(PATH, json=body, headers={"X-Hark-Session": "mine"})
            await response.content.readline()
            response.close()
            await events.wait_for("receipt", turn=None)
            await until(lambda: is_queue_empty(web))
            gate.set()
            end = await events.wait_for("turn.ended")
        assert end["outcome"] == {"type": "completed", "text": "well, all of it"}
        assert len(web.model.requests) == 1


async def test_errors_have_openais_format(tmp_path: Path) -> None:
    async with run_web_server(
        tmp_path, [failing(400, message="no such thing"), failing(400, message="nor this")]
    ) as web:
        async with openai_client(web) as client:
            with pytest.raises(openai.APIStatusError, match="no such thing"):
                await client.chat.completions.create(model="hark", messages=[{"role": "user", "content": "hi"}])
            stream = await client.chat.completions.create(
                model="hark", messages=[{"role": "user", "content": "hi"}], stream=True
            )
            with pytest.raises(openai.APIError, match="nor this"):
                _ = [chunk async for chunk in stream]
            with pytest.raises(openai.NotFoundError):
                await client.chat.completions.create(model="other", messages=[{"role": "user", "content": "hi"}])
        bodies: list[dict[str, Any]] = [
            {"messages": []},
            {"messages": [{"role": "assistant", "content": "x"}]},
            {"messages": [{"role": "user", "content": ""}]},
            {"messages": [{"role": "wizard", "content": "x"}, *HI]},
            {"messages": HI, "n": 2},
            {"messages": HI, "tools": [{"type": "function"}]},
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}
                ]
            },
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            {"messages": [{"role": "user", "content": [{"type": "file", "file": {}}]}]},
            {"messages": 7},
        ]
        for body in bodies:
            status, answer = await web.call("POST", PATH, body)
            assert status == 400, (body, answer)
            assert set(answer["error"]) == {"code", "message", "type", "param"}
        assert len(web.model.requests) == 2


async def test_an_image_in_a_completion_reaches_the_model(tmp_path: Path) -> None:
    url = "data:image/png;base64,aGFyaw=="
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    async with run_web_server(tmp_path, [text(["a picture"])]) as web:
        status, _ = await web.call("POST", PATH, {"messages": [{"role": "user", "content": parts}]})
        assert status == 200
        assert web.model.requests[0].body["messages"][-1]["content"][1]["image_url"]["url"] == url


async def test_approval_requests_in_a_turn_without_a_user_are_refused_automatically(tmp_path: Path) -> None:
    script = [shell_call("touch made"), text(["I may not."])]
    async with run_web_server(tmp_path, script, approvals={"mode": "ask"}) as web:
        status, body = await web.call("POST", PATH, {"messages": HI})
        assert (status, body["choices"][0]["message"]["content"]) == (200, "I may not.")
        rows = await web.messages(body["hark"]["session"])
        [result] = [row for row in rows if row["role"] == "tool"]
        assert result["effect"] == Effect.NOT_STARTED
        assert "No user is available" in result["text"]


async def test_questions_of_children_in_a_turn_without_a_user_are_answered_automatically(tmp_path: Path) -> None:
    delegate = reply([CallChunk(0, "d", "delegate", '{"goal": "choose"}'), EndChunk("calls")])
    ask = reply([CallChunk(0, "a", "ask", '{"question": "Which?"}'), EndChunk("calls")])
    async with run_web_server(
        tmp_path, [delegate, ask, text(["any"]), text(["done"])], approvals={"mode": "all"}
    ) as web:
        status, body = await web.call("POST", PATH, {"messages": HI})
        assert (status, body["choices"][0]["message"]["content"]) == (200, "done")


async def test_a_reply_that_reaches_the_length_limit_has_finish_reason_length(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, [tokens(200)], limits={"reply_characters": 100}) as web:
        _, body = await web.call("POST", PATH, {"messages": HI})
        assert body["choices"][0]["finish_reason"] == "length"
