"""Hooks in the document of the API: those that answer now, and every way in which they answer."""

from pathlib import Path

import pytest

from tests.fakes.webhook_program import signed
from tests.surfaces.webhook.webhook_fixture import hooked

TOKEN = {"Authorization": "Bearer a token that programs don't have"}
BODIES = (
    *(b"", b"{", b"[]", b"null", b"\xff", b"{}", b"[" * 5000),
    *(b'{"text": 5}', b'{"id": "", "text": "x"}', b'{"id": "\\ud800", "text": "x"}'),
    *(b'{"id": "i", "text": "\\u0000", "chat": "../.."}', b'{"id": "i", "at": 1e400}'),
)


async def test_the_document_has_the_hooks_that_answer_now(tmp_path: Path) -> None:
    async with hooked(tmp_path, {"github": {"signature": "github"}}) as world:
        _, told = await world.web.call("GET", "/openapi.json", headers=TOKEN)
        assert told["paths"]["/hooks/ci"]["post"]["summary"] == "What ci sends, signed (hark): docs/webhook.md"
        assert told["paths"]["/hooks/github"]["post"]["security"] == []
        world.web.place.hooks.forget("webhook")
        _, told = await world.web.call("GET", "/openapi.json", headers=TOKEN)
        assert not [path for path in told["paths"] if path.startswith("/hooks/")]


@pytest.mark.parametrize("name", ["ci", "foreign"])
@pytest.mark.parametrize("body", BODIES)
async def test_whatever_comes_is_answered_as_the_document_tells(tmp_path: Path, name: str, body: bytes) -> None:
    async with hooked(tmp_path, {"foreign": {"template": "{text} {more|nothing}"}}) as world:
        _, told = await world.web.call("GET", "/openapi.json", headers=TOKEN)
        answers = told["paths"][f"/hooks/{name}"]["post"]["responses"]
        unsigned, _ = await world.post(body, {}, name)
        status, _ = await world.post(body, signed(body), name)
    assert (unsigned, "401" in answers) == (401, True)
    assert status == 202 or (status < 500 and str(status) in answers), status
