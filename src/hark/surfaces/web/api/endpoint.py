"""One row of the endpoint table: a path, its handler, and details for the OpenAPI document."""

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
    """One HTTP method of one path.

    The handler's signature defines the request and the response, and its docstring is the summary. The handler takes
    the context and the request, and `body` and `query` if it declares them; both are decoded into the declared
    structs. The returned struct is sent with the first of `statuses`. If the handler builds its own Response,
    `response` is the struct in it, or `content` lists its media types. `errors` are the error statuses of this
    endpoint only. `headers` are the request headers that it reads. `accepts` are the media types of a body that is
    not JSON.
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
        """The handler's declared types: `body` and `query` if it takes them, and `return` if the response is JSON."""
        hints = get_type_hints(self.handler, include_extras=True)
        hints["return"] = hints["return"] if self.response is None else self.response
        return {name: hints[name] for name in ("body", "query", "return") if hints.get(name, Response) is not Response}

    async def handle(self, web: WebContext, request: Request) -> Response:
        """Decode the request, call the handler, and encode the returned value.

        Raises:
            ApiError: The request is invalid, or the handler refuses it.
        """
        arguments: dict[str, Any] = {}
        if "query" in self.types:
            arguments["query"] = read_query(request, self.types["query"])
        if "body" in self.types:
            max_bytes = web.access.max_body_bytes
            arguments["body"] = await read_json(
                request, self.types["body"], max_bytes, may_be_empty=self.is_body_optional
            )
        result = await self.handler(web, request, **arguments)
        return result if isinstance(result, Response) else json_response(result, self.statuses[0])
