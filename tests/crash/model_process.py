"""The model server as its driver sees it: a port, and complaints about requests."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Model:
    """The model server's process, and what it found wrong with requests."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.complaints: list[str] = []


@asynccontextmanager
async def running_model() -> AsyncGenerator[Model]:
    """Start the model server; it ends with the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.crash.model", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    model = Model(json.loads(await process.stdout.readline())["port"])

    async def listen(lines: asyncio.StreamReader) -> None:
        async for line in lines:
            model.complaints.append(json.loads(line)["invalid"])

    listening = asyncio.create_task(listen(process.stdout))
    try:
        yield model
    finally:
        process.kill()
        await process.wait()
        await listening
