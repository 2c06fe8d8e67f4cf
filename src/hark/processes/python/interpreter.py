"""The program of a Python worker: runs the code that it is sent, in one namespace, until its line ends.

It runs by itself under whatever Python a project has, from version 3.8 on, so it imports nothing of Hark.
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
from typing import Any, Iterator, TextIO  # noqa: UP035 - where old versions have it

FRAMES = 20
_PR_SET_PDEATHSIG = 1


def main(descriptor: int) -> None:
    """Answer each request, a line of JSON, with a line of JSON."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    line = socket.socket(fileno=descriptor)
    requests = line.makefile("rb")
    output = _Output()
    space = types.ModuleType("__main__")
    sys.modules["__main__"] = space
    sys.argv = [""]
    own = os.getpid()
    number = 0
    with contextlib.suppress(OSError):  # the code may have closed the line
        while request := requests.readline():
            number += 1
            output.mend()
            answer = _run(json.loads(request)["code"], f"<call {number}>", space.__dict__)
            _flush()
            if os.getpid() != own:  # the code forked, and this is the child at its end
                break
            line.sendall(json.dumps(answer).encode() + b"\n")
    os._exit(0)


class _Output:
    """Standard output and errors, whole again whatever the code did to them."""

    def __init__(self) -> None:
        self._pipe = os.dup(1)
        self._streams = [_opened(1), _opened(2)]

    def mend(self) -> None:
        for place, descriptor in enumerate((1, 2)):
            os.dup2(self._pipe, descriptor)
            if self._streams[place].closed:
                self._streams[place] = _opened(descriptor)
        sys.stdout, sys.stderr = self._streams
        sys.__stdout__, sys.__stderr__ = self._streams  # type: ignore[misc] # ours, not the interpreter's


def _opened(descriptor: int) -> TextIO:
    return open(descriptor, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)


def _run(code: str, name: str, space: dict[str, Any]) -> dict[str, Any]:
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), space)  # noqa: S102 - running code is what it is for
        if isinstance(last, ast.Expr):
            sys.displayhook(eval(compile(ast.Expression(last.value), name, "eval"), space))  # noqa: S307 - as above
    except SystemExit as leaving:
        return {"is_error": bool(leaving.code), "note": f"sys.exit({leaving.code!r}) ended the code"}
    except BaseException as error:  # noqa: BLE001 - the tool call boundary: whatever ends the code is its result
        _flush()
        with contextlib.suppress(OSError):
            os.write(2, _short(error).encode("utf-8", "replace"))
        return {"is_error": True, "note": ""}
    return {"is_error": False, "note": ""}


def _short(error: BaseException) -> str:
    """Return a traceback with the frames of the code alone, and of other files of the project."""
    try:
        summary = traceback.TracebackException.from_exception(error)
        for one in _chain(summary):
            own = [frame for frame in one.stack if _is_own(frame.filename)]
            one.stack = traceback.StackSummary.from_list(own[-FRAMES:])
        return "".join(summary.format())
    except Exception:  # noqa: BLE001 - an exception may be any object, and fail at anything
        return f"{type(error).__name__}, which can't be shown\n"


def _chain(summary: traceback.TracebackException | None) -> Iterator[traceback.TracebackException]:
    while summary is not None:
        yield summary
        summary = summary.__cause__ or summary.__context__


def _is_own(path: str) -> bool:
    libraries = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    is_ours = path == __file__ or path.startswith("<frozen")
    return not is_ours and not any(path.startswith(library + os.sep) for library in libraries)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the code may have put anything in its place
            stream.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
