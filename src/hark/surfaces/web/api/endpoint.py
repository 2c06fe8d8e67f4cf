"""A row of the endpoint table: a path, its handler, and the facts that the OpenAPI document adds."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_type_hints

from starlette.requests import Request
from starlette.responses import Response

from hark.surfaces.web.api.body import read_json, read_query
from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import json_response


@dataclass(frozen=True)
class HttpEndpoint:
    """One method of one path.

    The handler's signature is the contract, and its docstring the summary. It takes the context and the request, and
    `body` and `query` if it declares them: they are decoded to the declared structs. The struct that it returns is
    encoded with the first of `statuses`. A handler that builds its own Response has `response`, the struct in it, or
    `content`, its media types. `errors` are its own error statuses. `headers` are the request headers that it reads.
    `accepts` are the media types of a body that is not JSON.
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[Any]]
    statuses: tuple[int, ...] = (200,)
    errors: tuple[int, ...] = ()
    response: Any = None
    content: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    accepts: tuple[str, ...] = ()
    is_body_optional: bool = False

    @cached_property
    def types(self) -> dict[str, Any]:
        """The declared types of the handler: `body` and `query` if it takes them, and `return` if that is JSON."""
        hints = get_type_hints(self.handler, include_extras=True)
        hints["return"] = hints["return"] if self.response is None else self.response
        return {name: hints[name] for name in ("body", "query", "return") if hints.get(name, Response) is not Response}

    async def respond(self, web: WebContext, request: Request) -> Response:
        """Decode the request, call the handler, and encode what it returns.

        Raises:
            ApiError: The request is invalid, or the handler refuses it.
        """
        inputs: dict[str, Any] = {}
        if "query" in self.types:
            inputs["query"] = read_query(request, self.types["query"])
        if "body" in self.types:
            most = web.access.max_body
            inputs["body"] = await read_json(request, self.types["body"], most, may_be_empty=self.is_body_optional)
        answer = await self.handler(web, request, **inputs)
        return answer if isinstance(answer, Response) else json_response(answer, self.statuses[0])
