"""No secret is told: not in logs, journals, errors, answers or metrics, whatever fails and whoever repeats it to us."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from hark.app.settings.secrets import known_secrets
from hark.app.settings.types import Settings
from hark.text.redaction import redacted, secrets_in_address
from tests.cli.command_line import Hark, Running, opened
from tests.waiting import until

SECRETS = {
    "route key": "canary-route-8c1f",
    "key of the environment": "canary-env-route-77d0",
    "login": "canary-serve-token-4a",
    "telegram": "123456:canary-telegram-90ab",
    "discord": "canary-discord-token-11",
    "slack": "xoxb-canary-slack-22",
    "slack app": "xapp-canary-slack-33",
    "matrix": "canary-matrix-token-44",
    "MCP header": "canary-mcp-header-55",
    "MCP variable": "canary-mcp-env-66",
    "MCP variable from outside": "canary-mcp-outer-77",
    "MCP address": "canary-mcp-url-88",
    "transcription": "canary-stt-key-99",
}
SPILLING = "import os, sys; sys.stderr.write(repr(dict(os.environ))); sys.stderr.flush(); sys.exit(3)"
SETTINGS = """
[[routes]]
name = "main"
base_url = "{base}/v1"
model = "m"
api_key = "{route key}"
[[routes]]
name = "other"
provider = "anthropic"
base_url = "{base}/v1"
model = "m"
api_key_env = "CANARY_ROUTE"
[[routes]]
name = "third"
provider = "responses"
base_url = "{base}/v1"
model = "m"
api_key = "{route key}"
[serve]
drain_seconds = 0
[logs]
level = "debug"
format = "json"
[voice]
stt = "openai"
base_url = "{base}/v1"
api_key_env = "CANARY_STT"
[surfaces.telegram]
token = "{telegram}"
api_base = "{base}"
[surfaces.discord]
token = "{discord}"
api_base = "{base}"
[surfaces.slack]
token = "{slack}"
app_token = "{slack app}"
api_base = "{base}"
[surfaces.matrix]
token = "{matrix}"
api_base = "{base}"
[mcp.servers.far]
url = "{base}/mcp?key={MCP address}"
start = "eager"
headers = {{ Authorization = "Bearer {MCP header}" }}
[mcp.servers.near]
command = "{python}"
args = ["-c", "{spilling}"]
start = "eager"
env = {{ NEAR_KEY = "{MCP variable}", OUTER_KEY = "${{CANARY_OUTER}}" }}
"""


@asynccontextmanager
async def gossip() -> AsyncGenerator[tuple[str, list[str]]]:
    """A server that repeats to everybody, in every answer, all that it was told; and the paths that it was asked."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        told = f"No: {request.path_qs} {dict(request.headers)} {await request.text()}"[:4000]
        status = 400 if request.path.endswith("/responses") else 401
        words = {"error": {"message": told, "code": "bad", "type": "bad"}, "ok": False, "description": told}
        return web.json_response(
            {**words, "errcode": "M_UNKNOWN", "error_code": status, "message": told}, status=status
        )

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked
    finally:
        await runner.cleanup()


async def provoked(base: str) -> list[str]:
    """Have everything fail; return what was answered."""
    answers: list[str] = []
    headers = {"Authorization": f"Bearer {SECRETS['login']}"}
    async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(60), trust_env=False) as client:

        async def call(method: str, path: str, more: dict[str, str] | None = None, **options: Any) -> str:
            async with client.request(method, path, headers=headers | (more or {}), **options) as response:
                answers.append(await response.text())
                return answers[-1]

        await call("POST", "/login", json={"token": SECRETS["login"]})
        await call("POST", "/v1/chat/completions", json={"messages": [{"role": "user", "content": "hi"}]})
        for model in ("main", "other", "third"):
            body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": model == "main"}
            await call("POST", "/v1/chat/completions", {"X-Hark-Session": "demo"}, json=body)
        for words in ("/mcp", "/status", "/model", "/doctor"):
            await call("POST", "/api/sessions/demo/messages", json={"text": words})
        await call("POST", "/api/sessions/demo/voice", {"Content-Type": "audio/ogg"}, data=b"OggS")
        for path in (
            *("/metrics", "/api/sessions", "/api/status", "/openapi.json", "/v1/models", "/api/search?q=canary"),
            *("/api/sessions/demo/transcript", "/api/sessions/demo/queue", "/api/turns/demo.t1/timeline", "/nothing"),
        ):
            await call("GET", path)
    return answers


async def _paths(asked: list[str], running: Running) -> None:
    """Return when all that is configured has tried its luck."""
    wanted = ("/bot", "users/@me", "auth.test", "_matrix", "/mcp")

    def all_asked() -> bool:
        assert running.process.returncode is None
        return all(any(word in path for path in asked) for word in wanted)

    await until(all_asked, shows=lambda: asked)


def spilled(texts: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return which secrets are where, with some words around them."""
    found: list[tuple[str, str, str]] = []
    for where, text in texts.items():
        for name, secret in SECRETS.items():
            place = text.find(secret)
            if place >= 0:
                found.append((where, name, text[max(0, place - 160) : place + 60]))
    return found


def kept(hark: Hark) -> dict[str, str]:
    """Return all that lies in the home, but for the settings."""
    files = (path for path in hark.home.rglob("*") if path.is_file() and path.name != "config.toml")
    return {str(path.relative_to(hark.home)): path.read_bytes().decode("latin-1") for path in files}


async def test_no_secret_is_told_whatever_fails(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark, gossip() as (base, asked):
        values = {**SECRETS, "base": base, "python": sys.executable, "spilling": SPILLING}
        (hark.home / "config.toml").write_text(SETTINGS.format(**values))
        hark.environment |= {
            "CANARY_ROUTE": SECRETS["key of the environment"],
            "CANARY_OUTER": SECRETS["MCP variable from outside"],
            "CANARY_STT": SECRETS["transcription"],
        }
        del hark.environment["SSL_CERT_FILE"]  # an MCP server behind HTTP is not asked without certificates
        running = await hark.start("serve", "--port", "0", "--verbose", "--token", SECRETS["login"])
        try:
            address = (await running.until("serving on")).rpartition(" ")[2].strip()
            answers = await provoked(address)
            async with asyncio.timeout(30):
                await _paths(asked, running)
        finally:
            running.process.terminate()
            ended = await running.end()
        texts = {f"answer {number}": text for number, text in enumerate(answers)}
        texts |= {"stdout": ended.out, "stderr": ended.err} | kept(hark)
    assert spilled(texts) == []


def test_secrets_are_known_from_settings_and_environment() -> None:
    settings = msgspec.convert(
        {
            "routes": [
                {"api_key": "key-of-a-route", "base_url": "http://me:pass-of-mine@host/v1"},
                {"api_key_env": "A"},
            ],
            "mcp": {"servers": {"one": {"command": "x", "env": {"B": "${B}", "WHERE": "/some/place"}}}},
            "surfaces": {"new": {"signing_secret": "of-a-surface", "allow": ["somebody"]}},
        },
        Settings,
    )
    found = known_secrets(
        settings, {"A": "key-in-a", "HOME": "/home/me", "SOME_TOKEN": "token-of-some", "X_KEY": "abc"}
    )
    assert set(found) == {"key-of-a-route", "pass-of-mine", "key-in-a", "of-a-surface", "token-of-some"}


def test_secrets_are_hidden_wherever_they_stand() -> None:
    assert redacted("key=abc, again abc", ["", "abc"]) == "key=[hidden], again [hidden]"
    assert list(secrets_in_address("https://a:b@host/?api_key=c&page=2#d")) == ["b", "c"]
    assert list(secrets_in_address("http://[broken")) == []
