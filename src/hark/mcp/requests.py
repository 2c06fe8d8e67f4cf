"""What can be asked of a server, and one request on its way: made in the call's task, served in the connection's."""

import asyncio
from typing import Any

import anyio
from msgspec import Struct

from hark.mcp.forms import CANCELLED, Filled, Form, fill
from hark.protocol.tool import CallContext, ToolOutput

PROGRESS_LINES = 1000


class CallTool(Struct, frozen=True):
    """Use one of its tools."""

    name: str
    arguments: dict[str, Any]


class ListResources(Struct, frozen=True):
    """Tell which resources there are, and which patterns of them."""


class ReadResource(Struct, frozen=True):
    """Hand over a resource."""

    uri: str


class ListPrompts(Struct, frozen=True):
    """Tell which prompts there are."""


class GetPrompt(Struct, frozen=True):
    """Fill in a prompt."""

    name: str
    arguments: dict[str, str]


Wish = CallTool | ListResources | ReadResource | ListPrompts | GetPrompt


class Lost(Struct, frozen=True):
    """The connection ended before there was a result. `is_untouched`: the server surely never began with it."""

    why: str
    is_untouched: bool = False


Outcome = ToolOutput | Lost


class Errand:
    """Carries a wish, what comes of it, and the questions that the server has meanwhile."""

    def __init__(self, wish: Wish, context: CallContext) -> None:
        self.wish = wish
        self.session = context.session
        self.scope = anyio.CancelScope()  # entered by the connection's task, cancelled by the call's
        self._context = context
        self._outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._forms: asyncio.Queue[tuple[Form, asyncio.Future[Filled]]] = asyncio.Queue()
        self._replies: list[asyncio.Future[Filled]] = []
        self._lines = 0
        self._is_over = False

    @property
    def is_finished(self) -> bool:
        """True when it is known what came of it."""
        return self._outcome.done()

    async def outcome(self) -> Outcome:
        """Return what came of it; for the call's task. Cancelling withdraws the wish, and any question with it."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._put_questions)
                await self._outcome
                tasks.cancel_scope.cancel()
            return self._outcome.result()
        finally:
            self._is_over = True
            self.scope.cancel()
            for reply in self._replies:
                _settle(reply, CANCELLED)

    def finish(self, outcome: Outcome) -> None:
        """Say what came of it; only the first time counts."""
        if not self._outcome.done():
            self._outcome.set_result(outcome)

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Show how far the server is."""
        self._lines += 1
        if self._is_over or self._lines > PROGRESS_LINES:
            return
        far = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        self._context.output(f"{far} {message}\n" if message else f"{far}\n")

    async def ask(self, form: Form) -> Filled:
        """Return what the call's person put into the form; for the connection's task. Cancelling withdraws it."""
        if self._is_over:
            return CANCELLED
        reply: asyncio.Future[Filled] = asyncio.get_running_loop().create_future()
        self._replies.append(reply)
        self._forms.put_nowait((form, reply))
        try:
            return await reply
        finally:
            self._replies.remove(reply)

    async def _put_questions(self) -> None:
        while True:
            form, reply = await self._forms.get()
            with anyio.CancelScope() as asking:
                reply.add_done_callback(lambda _, scope=asking: scope.cancel())
                if not reply.done():
                    _settle(reply, await fill(form, self._context))


def _settle(reply: asyncio.Future[Filled], filled: Filled) -> None:
    if not reply.done():
        reply.set_result(filled)
