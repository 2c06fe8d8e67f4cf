"""A plain function, run in a forked process that can be killed."""

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

from hark.processes.cookies import Owner, with_cookie
from hark.processes.output import OutputBuffer
from hark.processes.pipe import PipeReader, inherited
from hark.processes.start import adopt_orphans
from hark.processes.tree import ProcessTree
from hark.protocol.messages import Effect
from hark.protocol.tool import ToolOutput

_RESET = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)
_PR_SET_PDEATHSIG = 1
HIGHEST_DESCRIPTOR = 65536


async def run_in_child(function: Callable[[], Any], show: Callable[[str], None], owner: Owner) -> ToolOutput:
    """Return what the function returned or raised; `show` gets what it prints.

    It sees all that it closes over, as it was at the call, but no open files or connections of this process, and what
    it changes in memory is its own. What it starts is the owner's. Cancelling kills it, with all that it started.
    """
    result = bytearray()
    printed = OutputBuffer(show)
    cookie = owner.new_cookie()
    child, result_end, printed_end = _start(function, cookie)
    tree = ProcessTree(child, cookie)
    pipes = PipeReader(result_end, result.extend), PipeReader(printed_end, printed.receive)
    try:
        await tree.exited()
    finally:
        with anyio.CancelScope(shield=True):  # bounded by the stop itself
            await tree.stop(grace_seconds=0)
        for pipe in pipes:
            pipe.close()
        printed.close()
        status = os.waitpid(child, os.WNOHANG)[1]  # noqa: ASYNC222 - it does not wait
    if status:
        return _broken(os.waitstatus_to_exitcode(status))
    return msgspec.json.decode(result, type=ToolOutput)


def as_text(value: object) -> str:
    """Return a value as a model reads it: text as it is, the rest as JSON, or as Python shows it."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr(value)


def as_output(value: object) -> ToolOutput:
    """Return a function's value as a tool's output; one that is an output already stays as it is."""
    return value if isinstance(value, ToolOutput) else ToolOutput(as_text(value))


def _broken(code: int) -> ToolOutput:
    why = f"was ended by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"left with exit code {code}"
    return ToolOutput(f"The tool's process {why} before it returned.", is_error=True, effect=Effect.UNKNOWN)


def _start(function: Callable[[], Any], cookie: str) -> tuple[int, int, int]:
    """Return the child's pid, and the ends of the pipes for its result and for what it prints."""
    result_end, result = os.pipe()
    printed_end, printed = os.pipe()
    with inherited(result_end, result), inherited(printed_end, printed):
        child = _fork()
        if child == 0:
            _be_child(function, result, printed, cookie)
    return child, result_end, printed_end


def _fork() -> int:
    with warnings.catch_warnings():
        # Python warns of a fork beside threads, since a lock that another thread holds stays locked in the child. The
        # child runs the tool's function alone, takes no lock of ours, and leaves by os._exit.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _be_child(function: Callable[[], Any], result: int, printed: int, cookie: str) -> NoReturn:
    """Live the child's life: never returns to the caller's stack, which is the parent's."""
    code = 1
    try:
        _leave_parent(result, printed, cookie)
        answer = msgspec.json.encode(_call(function))
        sys.stdout.flush()
        while answer:
            answer = answer[os.write(result, answer) :]
        code = 0
    finally:
        os._exit(code)


def _call(function: Callable[[], Any]) -> ToolOutput:
    try:
        return as_output(function())
    except BaseException as error:  # noqa: BLE001 - the tool call boundary: whatever ends it becomes its result
        return ToolOutput(as_text(f"{type(error).__name__}: {error}"), is_error=True)


def _leave_parent(result: int, printed: int, cookie: str) -> None:
    """Share nothing with the parent that could be felt there."""
    os.setsid()
    adopt_orphans()
    if sys.platform == "linux":
        # Its environment in /proc is the parent's, so no sweep could find it after a crash: it dies with the parent.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.set_wakeup_fd(-1)  # or a signal here would wake the parent's event loop
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    gc.freeze()  # the parent's garbage is not ours to finalize
    os.environ.update(with_cookie(os.environ, cookie))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    # A connection that the parent closes must end, and it would not while a copy is open here.
    os.closerange(3, result)
    os.closerange(result + 1, HIGHEST_DESCRIPTOR)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)  # noqa: SIM115
