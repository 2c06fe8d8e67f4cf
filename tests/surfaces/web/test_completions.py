"""The OpenAI-compatible API, with OpenAI's own client where that is what people use."""

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest

from hark.protocol.messages import Effect
from tests.cli.command_line import gated, shell_call
from tests.fakes.models.behaviours import failing, hanging, text, tokens
from tests.surfaces.web.web_fixture import World, served
from tests.waiting import at_most, until

PATH = "/v1/chat/completions"
HI = [{"role": "user", "content": "hi"}]


def client_of(world: World) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="none", base_url=f"{world.base}/v1", max_retries=0)


async def test_a_completion_is_a_turn(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["Hello", " there"])]) as world, client_of(world) as client:
        done = await client.chat.completions.create(model="hark", messages=[{"role": "user", "content": "hi"}])
        assert done.choices[0].message.content == "Hello there"
        assert done.choices[0].finish_reason == "stop"
        assert done.usage is not None
        assert (done.usage.prompt_tokens, done.usage.completion_tokens) == (10, 2)
        models = await client.models.list()
        assert [model.id for model in models.data] == ["hark", "main"]


async def test_a_completion_streams(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["Hello", " there"])]) as world, client_of(world) as client:
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


@pytest.mark.parametrize("streams", [False, True])
async def test_a_command_is_answered_with_what_comes_of_it(tmp_path: Path, streams: bool) -> None:
    async with served(tmp_path) as world:
        body = {"messages": [{"role": "user", "content": "/help me"}], "stream": streams}
        status, _, answer = await world.fetch(PATH, "POST", json=body)
        assert status == 200
        assert "/reset" in answer
        assert '"finish_reason":"stop"' in answer
        assert world.model.requests == []


async def test_the_clients_messages_are_the_history(tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I am Ada."},
        {"role": "assistant", "content": "Hello Ada."},
        {"role": "user", "content": [{"type": "text", "text": "Who am I?"}]},
    ]
    async with served(tmp_path, [text(["Ada"]), text(["again"])]) as world:
        status, body = await world.call("POST", PATH, {"messages": messages})
        assert (status, body["choices"][0]["message"]["content"]) == (200, "Ada")
        sent = world.model.requests[0].body["messages"]
        assert [(item["role"], item["content"]) for item in sent[2:]] == [
            ("user", "I am Ada."),
            ("assistant", "Hello Ada."),
            ("user", "Who am I?"),
        ]
        assert "Be brief." in sent[1]["content"]
        rows = await world.messages(body["hark"]["session"])
        assert [row["role"] for row in rows] == ["note", "user", "assistant", "user", "assistant"]
        await until(lambda: not world.agent.is_open(body["hark"]["session"]))
        _, other = await world.call("POST", PATH, {"messages": HI})
        assert other["hark"]["session"] != body["hark"]["session"]
        assert len(world.model.requests[1].body["messages"]) == 2


async def test_a_named_session_has_its_own_history(tmp_path: Path) -> None:
    named = {"X-Hark-Session": "mine"}
    async with served(tmp_path, [text(["one"]), text(["two"])]) as world:
        history = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "yes"}]
        await world.call("POST", PATH, {"messages": [*history, *HI]}, headers=named)
        again = {"messages": [*history, *HI, {"role": "assistant", "content": "one"}, *HI]}
        await world.call("POST", PATH, again, headers=named)
        texts = [row["text"] for row in await world.messages("mine")]
        assert texts == ["before", "yes", "hi", "one", "hi", "two"]
        status, body = await world.call("POST", PATH, {"messages": HI}, headers={"X-Hark-Session": "../x"})
        assert (status, body["error"]["code"]) == (400, "bad_name")


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_a_client_that_leaves_interrupts_its_turn(tmp_path: Path, is_streamed: bool) -> None:
    async with served(tmp_path, [hanging(3)]) as world:
        body = {"messages": HI, "stream": is_streamed}
        asking = asyncio.create_task(world.client.post(PATH, json=body, headers={"X-Hark-Session": "mine"}))
        seen = await world.model.request(1)
        if is_streamed:
            response = await asking
            await response.content.readline()
            response.close()
        else:
            asking.cancel()
            await asyncio.wait([asking])
        await asyncio.wait_for(seen.left.wait(), at_most(5))
        await world.idle("mine")
        end = world.agent.session("mine").door.state.last_end
        assert end is not None
        assert vars_of(end.outcome) == {"source": "the client disconnected"}


def vars_of(outcome: Any) -> dict[str, Any]:
    return {"source": outcome.source}


async def is_queue_empty(world: World) -> bool:
    return not (await world.call("GET", "/api/sessions/mine/queue"))[1]["queue"]


async def test_a_client_that_leaves_takes_back_what_waits_and_nothing_of_others(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with served(tmp_path, [gated(gate, "all of it")], delivery={"api": "queue"}) as world:
        await world.say("mine", "others' work")
        await world.model.request(1)
        async with world.events("mine") as events:
            body = {"messages": HI, "stream": True}
            response = await world.client.post(PATH, json=body, headers={"X-Hark-Session": "mine"})
            await response.content.readline()
            response.close()
            await events.until("receipt", turn=None)
            await until(lambda: is_queue_empty(world))
            gate.set()
            end = await events.until("turn.ended")
        assert end["outcome"] == {"type": "completed", "text": "well, all of it"}
        assert len(world.model.requests) == 1


async def test_errors_come_in_openais_shape(tmp_path: Path) -> None:
    async with served(tmp_path, [failing(400, words="no such thing"), failing(400, words="nor this")]) as world:
        async with client_of(world) as client:
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
            status, answer = await world.call("POST", PATH, body)
            assert status == 400, (body, answer)
            assert set(answer["error"]) == {"code", "message", "type", "param"}
        assert len(world.model.requests) == 2


async def test_a_picture_in_a_completion_reaches_the_model(tmp_path: Path) -> None:
    url = "data:image/png;base64,aGFyaw=="
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    async with served(tmp_path, [text(["a picture"])]) as world:
        status, _ = await world.call("POST", PATH, {"messages": [{"role": "user", "content": parts}]})
        assert status == 200
        assert world.model.requests[0].body["messages"][-1]["content"][1]["image_url"]["url"] == url


async def test_steps_are_told_apart_and_nobody_is_asked(tmp_path: Path) -> None:
    script = [shell_call("touch made"), text(["I may not."])]
    async with served(tmp_path, script, approvals={"mode": "ask"}) as world:
        status, body = await world.call("POST", PATH, {"messages": HI})
        assert (status, body["choices"][0]["message"]["content"]) == (200, "I may not.")
        rows = await world.messages(body["hark"]["session"])
        [result] = [row for row in rows if row["role"] == "tool"]
        assert result["effect"] == Effect.NOT_STARTED
        assert "Nobody is there to ask" in result["text"]


async def test_a_limit_is_told_as_length(tmp_path: Path) -> None:
    async with served(tmp_path, [tokens(200)], limits={"reply_characters": 100}) as world:
        _, body = await world.call("POST", PATH, {"messages": HI})
        assert body["choices"][0]["finish_reason"] == "length"
