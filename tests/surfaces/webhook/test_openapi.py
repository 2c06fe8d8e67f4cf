"""The OpenAPI document lists the registered hooks and all their responses."""

from pathlib import Path

import pytest

from tests.fakes.webhook_program import signature_headers
from tests.surfaces.webhook.webhook_fixture import running_webhook

TOKEN = {"Authorization": "Bearer a token that programs don't have"}
BODIES = (
    *(b"", b"{", b"[]", b"null", b"\xff", b"{}", b"[" * 5000),
    *(b'{"text": 5}', b'{"id": "", "text": "x"}', b'{"id": "\\ud800", "text": "x"}'),
    *(b'{"id": "i", "text": "\\u0000", "chat": "../.."}', b'{"id": "i", "at": 1e400}'),
)


async def test_the_openapi_document_lists_the_registered_hooks(tmp_path: Path) -> None:
    async with running_webhook(tmp_path, {"github": {"signature": "github"}}) as webhook:
        _, document = await webhook.web.call("GET", "/openapi.json", headers=TOKEN)
        assert (
            document["paths"]["/hooks/ci"]["post"]["summary"]
            == "Receive signed requests from ci (hark); see docs/webhook.md"
        )
        assert document["paths"]["/hooks/github"]["post"]["security"] == []
        webhook.web.context.hooks.unregister("webhook")
        _, document = await webhook.web.call("GET", "/openapi.json", headers=TOKEN)
        assert not [path for path in document["paths"] if path.startswith("/hooks/")]


@pytest.mark.parametrize("name", ["ci", "foreign"])
@pytest.mark.parametrize("body", BODIES)
async def test_every_request_gets_a_response_that_the_openapi_document_lists(
    tmp_path: Path, name: str, body: bytes
) -> None:
    async with running_webhook(tmp_path, {"foreign": {"template": "{text} {more|nothing}"}}) as webhook:
        _, document = await webhook.web.call("GET", "/openapi.json", headers=TOKEN)
        answers = document["paths"][f"/hooks/{name}"]["post"]["responses"]
        unsigned, _ = await webhook.post(body, {}, name)
        status, _ = await webhook.post(body, signature_headers(body), name)
    assert (unsigned, "401" in answers) == (401, True)
    assert status == 202 or (status < 500 and str(status) in answers), status
