"""The child process that runs the embedded model, and exits when its parent does.

It reads one line of JSON from stdin (`ModelServerRequest`), writes one to stdout (`ModelServerStatus`), and then
serves requests until stdin is closed.
"""

import ctypes
import json
import os
import signal
import sys
import threading
from importlib import import_module
from typing import Any, TypedDict

PR_SET_PDEATHSIG = 1
CONTEXT_TOKENS = 8192
BATCH_TOKENS = 32  # a cancel takes effect between batches
# Settings for such a small model: low randomness, and penalties against repetition.
TEMPERATURE, TOP_P, REPEAT_PENALTY, DRY_MULTIPLIER = 0.2, 0.9, 1.05, 0.8


class ModelServerRequest(TypedDict):
    """The parent's request: the weights file, the key that clients must send, and the number of threads."""

    model: str
    key: str
    threads: int


class ModelServerStatus(TypedDict, total=False):
    """The URL of the model server, or the error and the name of the missing system library, if any."""

    address: str
    error: str
    library: str


def main() -> None:
    """Serve the model until stdin is closed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the library's own output must not be parsed as an answer
    line = sys.stdin.buffer.readline()
    if not line:
        return
    # In a thread, because the parent may exit while the model is loading.
    threading.Thread(target=_exit_when_stdin_closes, daemon=True).start()
    server, answer = _start_server(json.loads(line))
    answers.write(json.dumps(answer) + "\n")
    answers.close()
    if server is not None:
        threading.Event().wait()


def _exit_when_stdin_closes() -> None:
    # Unbuffered, because a thread blocked in a buffered reader would hang the exit.
    while os.read(0, 1024):
        pass
    os._exit(0)


def _start_server(request: ModelServerRequest) -> tuple[Any, ModelServerStatus]:
    """Start the server. Return the server, or None on failure, and the status to report."""
    try:
        llama: Any = import_module("xllamacpp")
    except ImportError as error:
        return None, {"error": str(error), "library": _missing_library()}
    params = llama.CommonParams()
    params.model.path = request["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [request["key"]]
    params.n_ctx = CONTEXT_TOKENS
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.n_parallel = 1
    params.cache_ram_mib = 0
    params.warmup = False
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = ""
    params.verbosity = -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = request["threads"]
    params.sampling.temp, params.sampling.top_p = TEMPERATURE, TOP_P
    params.sampling.penalty_repeat = REPEAT_PENALTY
    params.sampling.dry_multiplier = DRY_MULTIPLIER
    try:
        server = llama.Server(params)
    except RuntimeError as error:
        return None, {"error": str(error)}
    return server, {"address": server.listening_address}


def _missing_library() -> str:
    """Return the system library that xllamacpp needs and this machine lacks, or ""."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL("libgomp.so.1")
        except OSError:
            return "libgomp.so.1"
    return ""


if __name__ == "__main__":
    main()
