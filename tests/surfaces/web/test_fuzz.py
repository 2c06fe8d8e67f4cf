"""The API fuzzed from its own OpenAPI document: no server errors, and only documented responses."""

import asyncio
import os
import sys
from pathlib import Path

from hark.surfaces.webhook.platform import HookSettings
from tests.surfaces.web.test_voice import EchoTranscriber
from tests.surfaces.web.web_fixture import run_web_server
from tests.surfaces.webhook.webhook_fixture import make_webhook_surface

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
SECONDS = os.environ.get("HARK_FUZZ_SECONDS", "6")
EXAMPLES = os.environ.get("HARK_FUZZ_EXAMPLES", "20")


async def test_fuzzed_requests_never_cause_a_server_error(tmp_path: Path) -> None:
    async with run_web_server(tmp_path, None, transcriber=EchoTranscriber()) as web:
        web.context.hooks.register(
            "webhook", *make_webhook_surface({"ci": HookSettings(secret="a secret")}).make_hooks()
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{web.base}/openapi.json"),
            *("--checks", CHECKS, "--exclude-path-regex", "/events$", "--phases", "coverage,fuzzing"),
            *(
                "--max-time",
                SECONDS,
                "--max-examples",
                EXAMPLES,
                "--request-timeout",
                "20",
                "--no-shrink",
                "--no-color",
            ),
            *("--continue-on-failure", "--generation-database", "none", "--warnings", "off"),
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
        failed = [(key, count) for key, count in web.context.metrics.requests.items() if key[2] in (500, 502, 503)]
        answered = sum(web.context.metrics.requests.values())
    assert failed == []
    assert process.returncode == 0, out.decode()[-8000:]
    assert answered > 50
