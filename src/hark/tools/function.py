"""Turns a typed Python function into a tool."""

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast, get_type_hints, overload

import msgspec

from hark.processes.cookies import ProcessOwner, current_owner
from hark.processes.python.function_worker import run_in_child, to_tool_output
from hark.protocol.tool import CallContext, NoUserToAsk, Question, Tool, ToolOutput, ToolSpec

KILL_SECONDS = 0.6


@overload
def tool(function: Callable[..., Any], /, *, name: str | None = None, changes: bool = True) -> Tool: ...
@overload
def tool(*, name: str | None = None, changes: bool = True) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, changes: bool = True
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Turn a typed function into a tool. Also works as a decorator, with or without arguments.

    The function's parameters become the tool's arguments; those with a default are optional. The first paragraph of
    its docstring is the description that the model sees. A parameter of type CallContext receives the call's context.
    An `async def` runs on the event loop. Any other function runs in a separate process, which a stop kills.

    Raises:
        TypeError: A parameter can't be described to a model.
    """
    if function is None:
        return partial(FunctionTool, name=name, changes=changes)
    return FunctionTool(function, name=name, changes=changes)


class FunctionTool:
    """A tool that calls a function."""

    def __init__(self, function: Callable[..., Any], *, name: str | None = None, changes: bool = True) -> None:
        self._function = function
        self.owner: ProcessOwner | None = None
        self._is_async = inspect.iscoroutinefunction(function)
        struct, schema, self._context_names = _inspect_signature(function)
        self.spec = ToolSpec(
            name=name or function.__name__,
            description=" ".join((inspect.getdoc(function) or "").split("\n\n")[0].split()),
            parameters=schema,
            is_changing=changes,
            grace_seconds=0.1 if self._is_async else KILL_SECONDS,
            arguments=struct,
        )

    def owned_by(self, owner: ProcessOwner) -> "FunctionTool":
        """Return a copy of this tool that registers its processes under `owner`, so the next start can kill them."""
        owned = copy(self)
        owned.owner = owner
        return owned

    async def run(self, arguments: msgspec.Struct, context: CallContext) -> ToolOutput:
        """Call the function. Cancelling cancels an async function, and kills the process of any other function."""
        given = msgspec.structs.asdict(arguments)
        values = {name: value for name, value in given.items() if value is not msgspec.UNSET}
        if self._is_async:
            return to_tool_output(await self._function(**values, **dict.fromkeys(self._context_names, context)))
        function = partial(self._function, **values, **dict.fromkeys(self._context_names, _ChildContext(context)))
        return await run_in_child(function, context.output, self.owner or current_owner())


def _inspect_signature(function: Callable[..., Any]) -> tuple[type[msgspec.Struct], dict[str, Any], list[str]]:
    """Return a function's parameters as a struct and as a schema, and the names of its context parameters.

    Arguments that a call omits are UNSET in the struct, so that the function's own defaults apply.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{function.__name__}: a model can't fill {parameter}. Give each parameter a name.")
    context_names = [p.name for p in parameters if hints.get(p.name) is CallContext]
    given = [p for p in parameters if p.name not in context_names]
    struct = msgspec.defstruct(
        "Arguments", [_struct_field(p, hints.get(p.name, Any)) for p in given], kw_only=True, forbid_unknown_fields=True
    )
    return struct, _function_schema(struct, {p.name: p.default for p in given}), context_names


class _ChildContext:
    """The context of a call that runs in a separate process. Can't ask the user; output goes to stdout."""

    def __init__(self, context: CallContext) -> None:
        self.session = context.session
        self.turn = context.turn
        self.call = context.call
        self.workspace: Path = context.workspace
        self.is_cut_by_message = False

    def output(self, text: str) -> None:
        print(text, end="", flush=True)  # noqa: T201 - the child's stdout is the call's output

    def report_unstopped(self, name: str) -> None:
        self.output(f"\n[still running: {name}]\n")

    async def ask(self, question: Question) -> str:
        raise NoUserToAsk("Only an async tool can ask the user. Make the function `async def`.")

    async def wait_for_steer(self) -> NoReturn:
        raise NotImplementedError("Only an async tool can wait for new messages. Make the function `async def`.")


def _struct_field(parameter: inspect.Parameter, hint: Any) -> Any:
    if parameter.default is parameter.empty:
        return (parameter.name, hint)
    return (parameter.name, hint | msgspec.UnsetType, msgspec.UNSET)


def _function_schema(struct: type[msgspec.Struct], defaults: Mapping[str, object]) -> dict[str, Any]:
    full_schema = msgspec.json.schema(struct)
    definitions: dict[str, Any] = full_schema["$defs"]
    schema = cast("dict[str, Any]", definitions.pop("Arguments"))
    schema.pop("title", None)
    for name, default in defaults.items():
        if isinstance(default, str | int | float):
            schema["properties"][name]["default"] = default
    return {**schema, "$defs": definitions} if definitions else schema
