"""The fake model server as seen by the driver: a port, and a list of invalid requests."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class ModelProcess:
    """The fake model server's process: its port and the invalid requests that it reported."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.invalid_requests: list[str] = []


@asynccontextmanager
async def run_model() -> AsyncGenerator[ModelProcess]:
    """Run the fake model server until the context exits."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.crash.model", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    model = ModelProcess(json.loads(await process.stdout.readline())["port"])

    async def read_faults(lines: asyncio.StreamReader) -> None:
        async for line in lines:
            model.invalid_requests.append(json.loads(line)["invalid"])

    reading = asyncio.create_task(read_faults(process.stdout))
    try:
        yield model
    finally:
        process.kill()
        await process.wait()
        await reading
