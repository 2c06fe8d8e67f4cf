"""`hark serve`: the gateway, with its web page, HTTP API, chat surfaces and schedules."""

import argparse
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hark.app.agent import Agent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--host", help="the address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="the port to listen on")
    parser.add_argument("--token", help="what callers must send; needed on another address than this machine's own")
    parser.add_argument("--verbose", action="store_true", help="show logs on stderr")


async def run(options: argparse.Namespace) -> int:
    """Serve, with all that belongs beside the web server."""
    from hark.app.schedules import run_schedules
    from hark.app.settings.config import load_here
    from hark.cli.serve.chat_surfaces import run_surfaces
    from hark.cli.serve.gateway import serve
    from hark.surfaces.web.hooks import Hooks

    hooks = Hooks()
    beside = [partial(run_surfaces, hooks=hooks), run_schedules, _warm_up]
    return await serve(options, load_here, beside, hooks)


async def _warm_up(agent: "Agent") -> None:
    """Load the speech model before the first voice message, so that its sender need not wait for that.

    Only where chats are served: elsewhere few users speak, and the process takes hundreds of megabytes.
    """
    from hark.surfaces.chat.settings import PLATFORMS

    transcriber = agent.parts.transcriber() if any(name in PLATFORMS for name in agent.settings.surfaces) else None
    if transcriber is not None:
        transcriber.warm_up()
