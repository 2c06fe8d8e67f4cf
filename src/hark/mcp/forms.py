"""A server's form, put to a person as one question after the other."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from hark.protocol.tool import CallContext, NobodyToAsk, Question

ACCEPT = "(accept)"
DECLINE = "(decline)"
SKIP = "(leave out)"
TRIES = 3

Value = str | int | float | bool | list[str] | None


class FieldChoice(Struct, frozen=True):
    """What a field may be, with words for it."""

    const: str | int | float | bool
    title: str = ""


class FormField(Struct, frozen=True, rename="camel"):
    """One field of a form, in the words of JSON schema; what isn't here is the server's own matter."""

    type: str = "string"
    title: str = ""
    description: str = ""
    format: str = ""
    default: Value = None
    enum: tuple[str | int | float | bool, ...] = ()
    enum_names: tuple[str, ...] = ()
    one_of: tuple[FieldChoice, ...] = ()
    any_of: tuple[FieldChoice, ...] = ()
    items: "FormField | None" = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: int = 0
    max_length: int | None = None

    @property
    def choices(self) -> dict[str, Value]:
        """What may be chosen: the words for it, and the value that each stands for."""
        if self.type == "boolean":
            return {"yes": True, "no": False}
        if self.items is not None:
            return self.items.choices
        if titled := self.one_of or self.any_of:
            return {choice.title or str(choice.const): choice.const for choice in titled}
        names = self.enum_names or tuple(str(value) for value in self.enum)
        return dict(zip(names, self.enum, strict=False))


class Form(Struct, frozen=True):
    """What a server wants to know. With a `url`, it wants a page to be opened."""

    server: str
    message: str
    fields: dict[str, FormField] = field(default_factory=dict[str, FormField])
    required: tuple[str, ...] = ()
    url: str = ""


class Filled(Struct, frozen=True):
    """What a person did with a form: only an accepted one has content."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Value] | None = None


DECLINED = Filled("decline")
CANCELLED = Filled("cancel")


class _Wrong(Exception):
    """The answer does not fit; the text says why."""


def read_form(server: str, message: str, schema: Mapping[str, Any]) -> Form:
    """Return the form that a flat JSON schema describes.

    Raises:
        msgspec.ValidationError: It describes none.
    """
    fields = msgspec.convert(schema.get("properties", {}), dict[str, FormField])
    return Form(server, message, fields, msgspec.convert(schema.get("required", ()), tuple[str, ...]))


async def fill(form: Form, context: CallContext) -> Filled:
    """Ask for each field; declined when nobody is there to ask. Cancelling withdraws the open question."""
    content: dict[str, Value] = {}
    try:
        if not form.fields:
            return await _confirm(form, context)
        for name in form.fields:
            answer = await _ask(form, name, context)
            if isinstance(answer, Filled):
                return answer
            if answer is not None:
                content[name] = answer
    except NobodyToAsk:
        return DECLINED
    return Filled("accept", content)


async def _confirm(form: Form, context: CallContext) -> Filled:
    page = f"\nOpen this page, then accept: {form.url}" if form.url else ""
    question = Question(f"The MCP server {form.server} asks: {form.message}{page}", (ACCEPT, DECLINE))
    answer = (await context.ask(question)).strip().casefold()
    is_accepted = answer in (ACCEPT, "accept", "yes", "y", "ok")
    return Filled("accept", None if form.url else {}) if is_accepted else DECLINED


async def _ask(form: Form, name: str, context: CallContext) -> Value | Filled:
    """Return the field's value, None when it is left out, or how the form was ended."""
    one = form.fields[name]
    is_needed = name in form.required and one.default is None
    options = (*one.choices, *(() if is_needed else (SKIP,)), DECLINE)
    text = _text(form, name)
    problem = ""
    for _ in range(TRIES):
        answer = (await context.ask(Question(f"{problem}{text}", options))).strip()
        if answer == DECLINE:
            return DECLINED
        if answer == SKIP and not is_needed:
            return one.default
        try:
            return _value(one, answer)
        except _Wrong as wrong:
            problem = f"That does not fit: {wrong}.\n"
    return CANCELLED


def _text(form: Form, name: str) -> str:
    one = form.fields[name]
    description = f": {one.description}" if one.description else ""
    several = "; several, with commas between them" if one.type == "array" else ""
    default = f", otherwise {one.default}" if one.default is not None else ""
    need = "needed" if name in form.required else "optional"
    kind = f"{one.format or one.type}{several}, {need}{default}"
    return f"The MCP server {form.server} asks: {form.message}\n{one.title or name}{description} ({kind})"


def _value(one: FormField, answer: str) -> Value:
    match one.type:
        case "array":
            words = [word.strip() for word in answer.split(",") if word.strip()]
            return [str(_chosen(one.choices, word)) if one.choices else word for word in words]
        case "integer":
            return _number(one, answer, int)
        case "number":
            return _number(one, answer, float)
        case _:
            return _chosen(one.choices, answer) if one.choices else _line(one, answer)


def _chosen(choices: Mapping[str, Value], answer: str) -> Value:
    for words, value in choices.items():
        if answer.casefold() in (words.casefold(), str(value).casefold()):
            return value
    raise _Wrong(f"choose one of {', '.join(choices)}")


def _number(one: FormField, answer: str, kind: type[int] | type[float]) -> int | float:
    try:
        number = kind(answer)
    except ValueError:
        raise _Wrong("a whole number is wanted" if kind is int else "a number is wanted") from None
    if one.minimum is not None and not number >= one.minimum:
        raise _Wrong(f"it must be at least {one.minimum:g}")
    if one.maximum is not None and not number <= one.maximum:
        raise _Wrong(f"it must be at most {one.maximum:g}")
    return number


def _line(one: FormField, answer: str) -> str:
    if len(answer) < one.min_length:
        raise _Wrong(f"it must have at least {one.min_length} characters")
    if one.max_length is not None and len(answer) > one.max_length:
        raise _Wrong(f"it may have at most {one.max_length} characters")
    return answer
