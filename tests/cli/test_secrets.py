"""No secret is disclosed in logs, journals, errors, answers or metrics, whatever fails."""

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
from hark.text.redaction import find_secrets_in_url, redact_secrets
from tests.cli.command_line import Hark, RunningCommand, open_hark
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
PRINT_ENVIRONMENT = "import os, sys; sys.stderr.write(repr(dict(os.environ))); sys.stderr.flush(); sys.exit(3)"
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
async def run_echoing_server() -> AsyncGenerator[tuple[str, list[str]]]:
    """Run a server that echoes each request in its error response. Yield its URL and the requested paths."""
    requested_paths: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        requested_paths.append(request.path)
        request_text = f"No: {request.path_qs} {dict(request.headers)} {await request.text()}"[:4000]
        status = 400 if request.path.endswith("/responses") else 401
        error = {
            "error": {"message": request_text, "code": "bad", "type": "bad"},
            "ok": False,
            "description": request_text,
        }
        return web.json_response(
            {**error, "errcode": "M_UNKNOWN", "error_code": status, "message": request_text}, status=status
        )

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", requested_paths
    finally:
        await runner.cleanup()


async def provoke_errors(base: str) -> list[str]:
    """Make every feature fail, and return the responses."""
    answers: list[str] = []
    headers = {"Authorization": f"Bearer {SECRETS['login']}"}
    async with aiohttp.ClientSession(base, timeout=aiohttp.ClientTimeout(60), trust_env=False) as client:

        async def call(method: str, path: str, extra_headers: dict[str, str] | None = None, **options: Any) -> str:
            async with client.request(method, path, headers=headers | (extra_headers or {}), **options) as response:
                answers.append(await response.text())
                return answers[-1]

        await call("POST", "/login", json={"token": SECRETS["login"]})
        await call("POST", "/v1/chat/completions", json={"messages": [{"role": "user", "content": "hi"}]})
        for model in ("main", "other", "third"):
            body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": model == "main"}
            await call("POST", "/v1/chat/completions", {"X-Hark-Session": "demo"}, json=body)
        for command in ("/mcp", "/status", "/model", "/doctor"):
            await call("POST", "/api/sessions/demo/messages", json={"text": command})
        await call("POST", "/api/sessions/demo/voice", {"Content-Type": "audio/ogg"}, data=b"OggS")
        for path in (
            *("/metrics", "/api/sessions", "/api/status", "/openapi.json", "/v1/models", "/api/search?q=canary"),
            *("/api/sessions/demo/transcript", "/api/sessions/demo/queue", "/api/turns/demo.t1/timeline", "/nothing"),
        ):
            await call("GET", path)
    return answers


async def _wait_for_requests(requested_paths: list[str], running: RunningCommand) -> None:
    """Wait until every configured service has received a request."""
    expected = ("/bot", "users/@me", "auth.test", "_matrix", "/mcp")

    def have_all_requested() -> bool:
        assert running.process.returncode is None
        return all(any(word in path for path in requested_paths) for word in expected)

    await until(have_all_requested, shows=lambda: requested_paths)


def find_secrets(texts: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return the secrets found in the texts, each with its location and the surrounding text."""
    found: list[tuple[str, str, str]] = []
    for where, text in texts.items():
        for name, secret in SECRETS.items():
            position = text.find(secret)
            if position >= 0:
                found.append((where, name, text[max(0, position - 160) : position + 60]))
    return found


def read_home(hark: Hark) -> dict[str, str]:
    """Return the contents of all files in the home, except the settings."""
    files = (path for path in hark.home.rglob("*") if path.is_file() and path.name != "config.toml")
    return {str(path.relative_to(hark.home)): path.read_bytes().decode("latin-1") for path in files}


async def test_no_secret_is_disclosed_whatever_fails(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark, run_echoing_server() as (base, requested_paths):
        values = {**SECRETS, "base": base, "python": sys.executable, "spilling": PRINT_ENVIRONMENT}
        (hark.home / "config.toml").write_text(SETTINGS.format(**values))
        hark.environment |= {
            "CANARY_ROUTE": SECRETS["key of the environment"],
            "CANARY_OUTER": SECRETS["MCP variable from outside"],
            "CANARY_STT": SECRETS["transcription"],
        }
        del hark.environment["SSL_CERT_FILE"]  # an MCP server over HTTP is not contacted without certificates
        running = await hark.start("serve", "--port", "0", "--verbose", "--token", SECRETS["login"])
        try:
            address = (await running.wait_for_line("serving on")).rpartition(" ")[2].strip()
            answers = await provoke_errors(address)
            async with asyncio.timeout(30):
                await _wait_for_requests(requested_paths, running)
        finally:
            running.process.terminate()
            ended = await running.wait_for_end()
        texts = {f"answer {number}": text for number, text in enumerate(answers)}
        texts |= {"stdout": ended.out, "stderr": ended.err} | read_home(hark)
    assert find_secrets(texts) == []


def test_secrets_are_collected_from_settings_and_environment() -> None:
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


def test_secrets_are_redacted_in_texts_and_urls() -> None:
    assert redact_secrets("key=abc, again abc", ["", "abc"]) == "key=[hidden], again [hidden]"
    assert list(find_secrets_in_url("https://a:b@host/?api_key=c&page=2#d")) == ["b", "c"]
    assert list(find_secrets_in_url("http://[broken")) == []
