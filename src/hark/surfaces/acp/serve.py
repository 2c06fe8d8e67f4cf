"""One editor, from its first line to its last."""

from collections.abc import Callable
from typing import cast

import anyio
from acp import Agent, run_agent

from hark.surfaces.acp.agent import EditorAgent
from hark.surfaces.acp.incoming import Incoming
from hark.surfaces.acp.transport import Out, Transport
from hark.surfaces.acp.workspace import EditorServices


class EditorServer:
    """Speaks with an editor over its lines."""

    def __init__(self, incoming: Incoming, out: Out, version: str) -> None:
        self._incoming = incoming
        self._out = out
        self._version = version

    async def run(self, services: EditorServices, on_end: Callable[[], None]) -> None:
        """Answer until the editor leaves or `Incoming.end` is called; `on_end` is told at once.

        What runs is interrupted then, and what was asked is still answered, within bounded time. Cancelling leaves
        the sessions as they are.
        """
        async with anyio.create_task_group() as tasks:
            agent = EditorAgent(services, self._version, tasks)

            def leave() -> None:
                on_end()
                agent.end()

            transport = Transport(self._incoming, self._out, leave)
            # It lacks what it does not offer, such as a fork: the library answers for that.
            await run_agent(cast("Agent", agent), transport, use_unstable_protocol=True)
            tasks.cancel_scope.cancel()
