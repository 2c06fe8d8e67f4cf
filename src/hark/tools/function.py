"""A plain typed Python function as a tool."""

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast, get_type_hints, overload

import msgspec

from hark.processes.cookies import Owner, this_process
from hark.processes.python.function_worker import as_output, run_in_child
from hark.protocol.tool import CallContext, NobodyToAsk, Question, Tool, ToolOutput, ToolSpec

KILL_SECONDS = 0.6


@overload
def tool(function: Callable[..., Any], /, *, name: str | None = None, changes: bool = True) -> Tool: ...
@overload
def tool(*, name: str | None = None, changes: bool = True) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, *, name: str | None = None, changes: bool = True
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function; also a decorator, with or without arguments.

    Its parameters are the tool's, those with a default are optional, and its docstring's first paragraph is what the
    model is told. A parameter of type CallContext gets the call's context. An `async def` runs on the event loop; any
    other function runs in a process of its own, which a stop kills.

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
        self.owner: Owner | None = None
        self._is_async = inspect.iscoroutinefunction(function)
        struct, schema, self._context_names = _signature(function)
        self.spec = ToolSpec(
            name=name or function.__name__,
            description=" ".join((inspect.getdoc(function) or "").split("\n\n")[0].split()),
            parameters=schema,
            is_changing=changes,
            grace_seconds=0.1 if self._is_async else KILL_SECONDS,
            arguments=struct,
        )

    def owned_by(self, owner: Owner) -> "FunctionTool":
        """Return the same tool for an app: what its function leaves running in a crash, the app's next start sweeps."""
        owned = copy(self)
        owned.owner = owner
        return owned

    async def run(self, arguments: msgspec.Struct, context: CallContext) -> ToolOutput:
        """Call the function. Cancelling cancels an async one, and kills the process of any other."""
        given = msgspec.structs.asdict(arguments)
        values = {name: value for name, value in given.items() if value is not msgspec.UNSET}
        if self._is_async:
            return as_output(await self._function(**values, **dict.fromkeys(self._context_names, context)))
        function = partial(self._function, **values, **dict.fromkeys(self._context_names, _ChildContext(context)))
        return await run_in_child(function, context.output, self.owner or this_process())


def _signature(function: Callable[..., Any]) -> tuple[type[msgspec.Struct], dict[str, Any], list[str]]:
    """Return a function's parameters as a struct and as a schema for the model, and its names for the call's context.

    What a call leaves out is UNSET in the struct, for the function's own default.
    """
    hints = get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{function.__name__}: a model can't give {parameter}; name each parameter.")
    context_names = [p.name for p in parameters if hints.get(p.name) is CallContext]
    given = [p for p in parameters if p.name not in context_names]
    struct = msgspec.defstruct(
        "Arguments", [_field(p, hints.get(p.name, Any)) for p in given], kw_only=True, forbid_unknown_fields=True
    )
    return struct, _schema(struct, {p.name: p.default for p in given}), context_names


class _ChildContext:
    """A call's context in another process: nobody can be asked from there, and output is printed."""

    def __init__(self, context: CallContext) -> None:
        self.session = context.session
        self.turn = context.turn
        self.call = context.call
        self.workspace: Path = context.workspace

    def output(self, text: str) -> None:
        print(text, end="", flush=True)  # noqa: T201 - the child's stdout is the call's output

    def left_running(self, what: str) -> None:
        self.output(f"\n[still runs: {what}]\n")

    async def ask(self, question: Question) -> str:
        raise NobodyToAsk("Only an async tool can ask a person: make the function `async def`.")

    async def steered(self) -> NoReturn:
        raise NotImplementedError("Only an async tool hears of new messages: make the function `async def`.")


def _field(parameter: inspect.Parameter, hint: Any) -> Any:
    if parameter.default is parameter.empty:
        return (parameter.name, hint)
    return (parameter.name, hint | msgspec.UnsetType, msgspec.UNSET)


def _schema(struct: type[msgspec.Struct], defaults: Mapping[str, object]) -> dict[str, Any]:
    whole = msgspec.json.schema(struct)
    definitions: dict[str, Any] = whole["$defs"]
    schema = cast("dict[str, Any]", definitions.pop("Arguments"))
    schema.pop("title", None)
    for name, default in defaults.items():
        if isinstance(default, str | int | float):
            schema["properties"][name]["default"] = default
    return {**schema, "$defs": definitions} if definitions else schema
