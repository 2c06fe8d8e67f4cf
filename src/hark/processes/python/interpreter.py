"""The program of a Python worker: runs each piece of code that it receives, in one namespace.

It runs standalone under any Python from version 3.8 that a project uses, so it imports nothing from Hark.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import json
import linecache
import os
import signal
import socket
import sys
import sysconfig
import traceback
import types
from typing import Any, Iterator, TextIO  # noqa: UP035 - old versions have Iterator here

MAX_FRAMES = 20
_PR_SET_PDEATHSIG = 1


def main(descriptor: int) -> None:
    """Serve requests on a socket. Each request and each response is one line of JSON."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    connection = socket.socket(fileno=descriptor)
    requests = connection.makefile("rb")
    streams = _OutputStreams()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv = [""]
    own_pid = os.getpid()
    number = 0
    with contextlib.suppress(OSError):  # the code may have closed the connection
        while request := requests.readline():
            number += 1
            streams.restore()
            answer = _run_code(json.loads(request)["code"], f"<call {number}>", module.__dict__)
            _flush_streams()
            if os.getpid() != own_pid:  # the code forked, and this is the child at its end
                break
            connection.sendall(json.dumps(answer).encode() + b"\n")
    os._exit(0)


class _OutputStreams:
    """Standard output and standard error, restored after code has closed or replaced them."""

    def __init__(self) -> None:
        self._pipe = os.dup(1)
        self._streams = [_open_stream(1), _open_stream(2)]

    def restore(self) -> None:
        for index, descriptor in enumerate((1, 2)):
            os.dup2(self._pipe, descriptor)
            if self._streams[index].closed:
                self._streams[index] = _open_stream(descriptor)
        sys.stdout, sys.stderr = self._streams
        sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc] # our own streams


def _open_stream(descriptor: int) -> TextIO:
    return open(descriptor, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)


def _run_code(code: str, name: str, namespace: dict[str, Any]) -> dict[str, Any]:
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), namespace)  # noqa: S102 - running code is its purpose
        if isinstance(last, ast.Expr):
            sys.displayhook(eval(compile(ast.Expression(last.value), name, "eval"), namespace))  # noqa: S307 - as above
    except SystemExit as exit_request:
        return {"is_error": bool(exit_request.code), "note": f"sys.exit({exit_request.code!r}) ended the code"}
    except BaseException as error:  # noqa: BLE001 - the tool call boundary: any exception becomes the result
        _flush_streams()
        with contextlib.suppress(OSError):
            os.write(2, _format_error(error).encode("utf-8", "replace"))
        return {"is_error": True, "note": ""}
    return {"is_error": False, "note": ""}


def _format_error(error: BaseException) -> str:
    """Return a traceback with only the frames of the executed code and of other project files."""
    try:
        summary = traceback.TracebackException.from_exception(error)
        for exception in _exception_chain(summary):
            own = [frame for frame in exception.stack if _is_project_file(frame.filename)]
            exception.stack = traceback.StackSummary.from_list(own[-MAX_FRAMES:])
        return "".join(summary.format())
    except Exception:  # noqa: BLE001 - an exception object may fail in any way
        return f"{type(error).__name__}, which can't be shown\n"


def _exception_chain(summary: traceback.TracebackException | None) -> Iterator[traceback.TracebackException]:
    while summary is not None:
        yield summary
        summary = summary.__cause__ or summary.__context__


def _is_project_file(path: str) -> bool:
    libraries = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    is_ours = path == __file__ or path.startswith("<frozen")
    return not is_ours and not any(path.startswith(library + os.sep) for library in libraries)


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the code may have replaced the stream with any object
            stream.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
