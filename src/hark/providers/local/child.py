"""The process in which the embedded model runs: a program of its own, that ends when its parent does.

One line of JSON comes on stdin (see `Order`), one goes out on stdout (see `Answer`); it serves until stdin ends.
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
BATCH_TOKENS = 32  # a cut is noticed between batches
# For so small a model: close to its first thought, but not in circles.
TEMPERATURE, TOP_P, REPEAT_PENALTY, ECHO_PENALTY = 0.2, 0.9, 1.05, 0.8


class ModelServerRequest(TypedDict):
    """What the parent wants: the weights, the key that requests must carry, and how many threads may work."""

    model: str
    key: str
    threads: int


class ModelServerStatus(TypedDict, total=False):
    """Where the model is served; or why it is not, and whether a system library is what is missing."""

    address: str
    error: str
    library: str


def main() -> None:
    """Serve until stdin ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints must not be taken for an answer
    line = sys.stdin.buffer.readline()
    if not line:
        return
    # In a thread, because loading takes a while, in which the parent may go.
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    server, answer = _serve(json.loads(line))
    answers.write(json.dumps(answer) + "\n")
    answers.close()
    if server is not None:
        threading.Event().wait()


def _end_with_stdin() -> None:
    # Unbuffered: at the end, a thread that waits inside a buffered reader would be in the way.
    while os.read(0, 1024):
        pass
    os._exit(0)


def _serve(order: ModelServerRequest) -> tuple[Any, ModelServerStatus]:
    """Return the running server, if there is one, and what to tell of it."""
    try:
        llama: Any = import_module("xllamacpp")
    except ImportError as error:
        return None, {"error": str(error), "library": _missing_library()}
    params = llama.CommonParams()
    params.model.path = order["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order["key"]]
    params.n_ctx = CONTEXT_TOKENS
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.n_parallel = 1
    params.cache_ram_mib = 0
    params.warmup = False
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = ""
    params.verbosity = -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    params.sampling.temp, params.sampling.top_p = TEMPERATURE, TOP_P
    params.sampling.penalty_repeat = REPEAT_PENALTY
    params.sampling.dry_multiplier = ECHO_PENALTY
    try:
        server = llama.Server(params)
    except RuntimeError as error:
        return None, {"error": str(error)}
    return server, {"address": server.listening_address}


def _missing_library() -> str:
    """Return the system library that xllamacpp needs and this machine does not have."""
    if sys.platform == "linux":
        try:
            ctypes.CDLL("libgomp.so.1")
        except OSError:
            return "libgomp.so.1"
    return ""


if __name__ == "__main__":
    main()
