"""Requests to an MCP server. A pending request connects the call's task with the connection's task."""

import asyncio
from typing import Any

import anyio
from msgspec import Struct

from hark.mcp.forms import CANCELLED, Form, FormResult, fill_form
from hark.protocol.tool import CallContext, ToolOutput

MAX_PROGRESS_LINES = 1000


class CallTool(Struct, frozen=True):
    """A request to call one of the server's tools."""

    name: str
    arguments: dict[str, Any]


class ListResources(Struct, frozen=True):
    """A request for the list of resources and resource templates."""


class ReadResource(Struct, frozen=True):
    """A request for the content of one resource."""

    uri: str


class ListPrompts(Struct, frozen=True):
    """A request for the list of prompts."""


class GetPrompt(Struct, frozen=True):
    """A request for one prompt, filled in with arguments."""

    name: str
    arguments: dict[str, str]


McpRequest = CallTool | ListResources | ReadResource | ListPrompts | GetPrompt


class RequestLost(Struct, frozen=True):
    """The request ended without a result. `is_untouched` means that the server certainly never started the request."""

    why: str
    is_untouched: bool = False


RequestResult = ToolOutput | RequestLost


class PendingRequest:
    """A request in progress, with its result, its progress output, and the forms that the server sends meanwhile."""

    def __init__(self, request: McpRequest, context: CallContext) -> None:
        self.request = request
        self.session = context.session
        self.scope = anyio.CancelScope()  # entered by the connection's task, cancelled by the call's
        self._context = context
        self._result: asyncio.Future[RequestResult] = asyncio.get_running_loop().create_future()
        self._forms: asyncio.Queue[tuple[Form, asyncio.Future[FormResult]]] = asyncio.Queue()
        self._replies: list[asyncio.Future[FormResult]] = []
        self._lines = 0
        self._is_over = False

    @property
    def is_finished(self) -> bool:
        """Whether the result is known."""
        return self._result.done()

    async def wait_for_result(self) -> RequestResult:
        """Wait for the result, in the task of the call. Cancelling cancels the request and withdraws open questions."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._ask_questions)
                await self._result
                tasks.cancel_scope.cancel()
            return self._result.result()
        finally:
            self._is_over = True
            self.scope.cancel()
            for reply in self._replies:
                _set_result_once(reply, CANCELLED)

    def finish(self, result: RequestResult) -> None:
        """Set the result. Only the first call has an effect."""
        if not self._result.done():
            self._result.set_result(result)

    def show_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Show the server's progress as output of the call."""
        self._lines += 1
        if self._is_over or self._lines > MAX_PROGRESS_LINES:
            return
        position = f"{progress:g}/{total:g}" if total else f"{progress:g}"
        self._context.output(f"{position} {message}\n" if message else f"{position}\n")

    async def ask_user(self, form: Form) -> FormResult:
        """Return the user's answers to a form, for the connection's task. Cancelling withdraws the form."""
        if self._is_over:
            return CANCELLED
        reply: asyncio.Future[FormResult] = asyncio.get_running_loop().create_future()
        self._replies.append(reply)
        self._forms.put_nowait((form, reply))
        try:
            return await reply
        finally:
            self._replies.remove(reply)

    async def _ask_questions(self) -> None:
        while True:
            form, reply = await self._forms.get()
            with anyio.CancelScope() as asking:
                reply.add_done_callback(lambda _, scope=asking: scope.cancel())
                if not reply.done():
                    _set_result_once(reply, await fill_form(form, self._context))


def _set_result_once(reply: asyncio.Future[FormResult], result: FormResult) -> None:
    if not reply.done():
        reply.set_result(result)
