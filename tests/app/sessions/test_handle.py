"""A session's handle works before the session is loaded."""

from pathlib import Path

import hark
from hark.providers.scripted import ScriptedProvider


async def test_the_transcript_of_a_stored_session_is_complete_when_it_is_read_first(tmp_path: Path) -> None:
    routes = [{"provider": ScriptedProvider([["hello"]])}]
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=routes) as agent:
        await agent.session("demo").say("hi")
        await agent.session("demo").idle()
    async with hark.open(home=tmp_path, workspace=tmp_path, routes=routes) as agent:
        assert [message.text for message in await agent.session("demo").transcript()] == ["hi", "hello"]
