"""`hark serve`: runs the gateway, with its web page, HTTP API, chat surfaces and schedules."""

import argparse
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hark.app.agent import Agent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--host", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, help="the port to listen on")
    parser.add_argument("--token", help="the token that clients must send; required unless the address is loopback")
    parser.add_argument("--verbose", action="store_true", help="show logs on stderr")


async def run(options: argparse.Namespace) -> int:
    """Run the gateway with its web server, chat surfaces and schedules."""
    from hark.app.schedules import run_schedules
    from hark.app.settings.config import load_here
    from hark.cli.serve.chat_surfaces import run_surfaces
    from hark.cli.serve.gateway import serve
    from hark.surfaces.web.hooks import Hooks

    hooks = Hooks()
    background_services = [partial(run_surfaces, hooks=hooks), run_schedules, _warm_up]
    return await serve(options, load_here, background_services, hooks)


async def _warm_up(agent: "Agent") -> None:
    """Load the speech model before the first voice message, so that its sender doesn't have to wait.

    Done only with chat surfaces, since voice is rare on others and the process takes hundreds of megabytes.
    """
    from hark.surfaces.chat.settings import PLATFORMS

    transcriber = agent.services.transcriber() if any(name in PLATFORMS for name in agent.settings.surfaces) else None
    if transcriber is not None:
        transcriber.warm_up()
