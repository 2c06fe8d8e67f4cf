"""Runs a Python function in a forked process that can be killed."""

import ctypes
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import anyio
import msgspec

from hark.processes.cookies import ProcessOwner, with_cookie
from hark.processes.launcher import adopt_orphans
from hark.processes.output import OutputBuffer
from hark.processes.pipe import PipeReader, pass_to_child
from hark.processes.tree import ProcessTree
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput

_RESET_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGCHLD,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
_PR_SET_PDEATHSIG = 1
MAX_DESCRIPTOR = 65536


async def run_in_child(function: Callable[[], Any], show: Callable[[str], None], owner: ProcessOwner) -> ToolOutput:
    """Run a function in a forked process and return its result or error as tool output. `show` gets the printed text.

    The function sees its closure as it was at the call, but no open files or connections of this process. Its changes
    in memory stay in the child. Its processes belong to `owner`. Cancelling kills the child and all its processes.
    """
    result = bytearray()
    output = OutputBuffer(show)
    cookie = owner.new_cookie()
    child, result_end, output_end = _start_child(function, cookie)
    tree = ProcessTree(child, cookie)
    pipes = PipeReader(result_end, result.extend), PipeReader(output_end, output.receive)
    try:
        await tree.wait_until_root_exited()
    finally:
        with anyio.CancelScope(shield=True):  # the stop has its own time limit
            await tree.stop(grace_seconds=0)
        for pipe in pipes:
            pipe.close()
        output.close()
        status = os.waitpid(child, os.WNOHANG)[1]  # noqa: ASYNC222 - WNOHANG doesn't wait
    if status:
        return _describe_crash(os.waitstatus_to_exitcode(status))
    return msgspec.json.decode(result, type=ToolOutput)


def to_text(value: object) -> str:
    """Return a value as text for the model: a string unchanged, other values as JSON, or else as `repr`."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr(value)


def to_tool_output(value: object) -> ToolOutput:
    """Return a function's result as tool output. A result that already is a ToolOutput is returned unchanged."""
    return value if isinstance(value, ToolOutput) else ToolOutput(to_text(value))


def _describe_crash(exit_code: int) -> ToolOutput:
    why = (
        f"was killed by signal {-exit_code} ({signal.strsignal(-exit_code)})"
        if exit_code < 0
        else f"exited with code {exit_code}"
    )
    return ToolOutput(f"The tool's process {why} before it returned.", is_error=True, effect=Effect.UNKNOWN)


def _start_child(function: Callable[[], Any], cookie: str) -> tuple[int, int, int]:
    """Fork the child. Return its pid, and the pipe ends that receive its result and its output."""
    result_end, result = os.pipe()
    output_end, output = os.pipe()
    with pass_to_child(result_end, result), pass_to_child(output_end, output):
        child = _fork_without_warning()
        if child == 0:
            _run_child(function, result, output, cookie)
    return child, result_end, output_end


def _fork_without_warning() -> int:
    with warnings.catch_warnings():
        # Python warns about a fork with threads, because a lock held by another thread stays locked in the child. The
        # child only runs the tool's function, uses none of our locks, and exits with os._exit.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _run_child(function: Callable[[], Any], result: int, output: int, cookie: str) -> NoReturn:
    """Run the function in the child and exit. Never returns to the caller's stack, which belongs to the parent."""
    code = 1
    try:
        _isolate_from_parent(result, output, cookie)
        answer = msgspec.json.encode(_call_function(function))
        sys.stdout.flush()
        while answer:
            answer = answer[os.write(result, answer) :]
        code = 0
    finally:
        os._exit(code)


def _call_function(function: Callable[[], Any]) -> ToolOutput:
    try:
        return to_tool_output(function())
    except BaseException as error:  # noqa: BLE001 - the tool call boundary: any exception becomes the result
        return ToolOutput(to_text(f"{type(error).__name__}: {error}"), is_error=True)


def _isolate_from_parent(result: int, output: int, cookie: str) -> None:
    """Detach the child from the parent's session, signals, environment and descriptors."""
    os.setsid()
    adopt_orphans()
    if sys.platform == "linux":
        # Its environment in /proc is the parent's, so no cleanup could find it after a crash. It dies with the
        # parent.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.set_wakeup_fd(-1)  # a signal here would wake the parent's event loop otherwise
    for number in _RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    gc.freeze()  # the parent's garbage must not be finalized here
    os.environ.update(with_cookie(os.environ, cookie))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    # A connection that the parent closes must end, which it wouldn't while a copy is open here.
    os.closerange(3, result)
    os.closerange(result + 1, MAX_DESCRIPTOR)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)  # noqa: SIM115
