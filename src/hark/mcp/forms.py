"""A server's form, which the user fills in as a series of questions."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from hark.protocol.tool import CallContext, NoUserToAsk, Question

ACCEPT = "(accept)"
DECLINE = "(decline)"
SKIP = "(skip)"
MAX_TRIES = 3

FieldValue = str | int | float | bool | list[str] | None


class FieldChoice(Struct, frozen=True):
    """An allowed value of a field, with its label."""

    const: str | int | float | bool
    title: str = ""


class FormField(Struct, frozen=True, rename="camel"):
    """One field of a form, as described by JSON schema. Other schema keywords are checked only by the server."""

    type: str = "string"
    title: str = ""
    description: str = ""
    format: str = ""
    default: FieldValue = None
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
    def choices(self) -> dict[str, FieldValue]:
        """The allowed values by label, or an empty dict if any value is allowed."""
        if self.type == "boolean":
            return {"yes": True, "no": False}
        if self.items is not None:
            return self.items.choices
        if titled := self.one_of or self.any_of:
            return {choice.title or str(choice.const): choice.const for choice in titled}
        names = self.enum_names or tuple(str(value) for value in self.enum)
        return dict(zip(names, self.enum, strict=False))


class Form(Struct, frozen=True):
    """A form that the server asks the user to fill in or, with a `url`, a page that the user is asked to open."""

    server: str
    message: str
    fields: dict[str, FormField] = field(default_factory=dict[str, FormField])
    required: tuple[str, ...] = ()
    url: str = ""


class FormResult(Struct, frozen=True):
    """The user's answer to a form. Only an accepted form has content."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, FieldValue] | None = None


DECLINED = FormResult("decline")
CANCELLED = FormResult("cancel")


class _InvalidAnswer(Exception):
    """The answer is not valid for the field. The text says why."""


def read_form(server: str, message: str, schema: Mapping[str, Any]) -> Form:
    """Return the form that a flat JSON schema describes.

    Raises:
        msgspec.ValidationError: The schema does not describe a form.
    """
    fields = msgspec.convert(schema.get("properties", {}), dict[str, FormField])
    return Form(server, message, fields, msgspec.convert(schema.get("required", ()), tuple[str, ...]))


async def fill_form(form: Form, context: CallContext) -> FormResult:
    """Ask the user for each field. Decline if no user is available. Cancelling withdraws the open question."""
    content: dict[str, FieldValue] = {}
    try:
        if not form.fields:
            return await _ask_confirmation(form, context)
        for name in form.fields:
            answer = await _ask_field(form, name, context)
            if isinstance(answer, FormResult):
                return answer
            if answer is not None:
                content[name] = answer
    except NoUserToAsk:
        return DECLINED
    return FormResult("accept", content)


async def _ask_confirmation(form: Form, context: CallContext) -> FormResult:
    page = f"\nOpen this page, then accept: {form.url}" if form.url else ""
    question = Question(f"The MCP server {form.server} asks: {form.message}{page}", (ACCEPT, DECLINE))
    answer = (await context.ask(question)).strip().casefold()
    is_accepted = answer in (ACCEPT, "accept", "yes", "y", "ok")
    return FormResult("accept", None if form.url else {}) if is_accepted else DECLINED


async def _ask_field(form: Form, name: str, context: CallContext) -> FieldValue | FormResult:
    """Return the field's value, None if the user skipped it, or a result that ends the form."""
    form_field = form.fields[name]
    is_required = name in form.required and form_field.default is None
    options = (*form_field.choices, *(() if is_required else (SKIP,)), DECLINE)
    text = _format_question(form, name)
    problem = ""
    for _ in range(MAX_TRIES):
        asked = Question(
            f"{problem}{text}", options, is_open_ended=not form_field.choices or form_field.type == "array"
        )
        answer = (await context.ask(asked)).strip()
        if answer == DECLINE:
            return DECLINED
        if answer == SKIP and not is_required:
            return form_field.default
        try:
            return _parse_value(form_field, answer)
        except _InvalidAnswer as invalid:
            problem = f"Invalid answer: {invalid}.\n"
    return CANCELLED


def _format_question(form: Form, name: str) -> str:
    form_field = form.fields[name]
    description = f": {form_field.description}" if form_field.description else ""
    separator_hint = "; separate several values with commas" if form_field.type == "array" else ""
    default = f", default {form_field.default}" if form_field.default is not None else ""
    requirement = "required" if name in form.required else "optional"
    kind = f"{form_field.format or form_field.type}{separator_hint}, {requirement}{default}"
    return f"The MCP server {form.server} asks: {form.message}\n{form_field.title or name}{description} ({kind})"


def _parse_value(form_field: FormField, answer: str) -> FieldValue:
    match form_field.type:
        case "array":
            items = [part.strip() for part in answer.split(",") if part.strip()]
            return [str(_parse_choice(form_field.choices, item)) if form_field.choices else item for item in items]
        case "integer":
            return _parse_number(form_field, answer, int)
        case "number":
            return _parse_number(form_field, answer, float)
        case _:
            return _parse_choice(form_field.choices, answer) if form_field.choices else _check_text(form_field, answer)


def _parse_choice(choices: Mapping[str, FieldValue], answer: str) -> FieldValue:
    for label, value in choices.items():
        if answer.casefold() in (label.casefold(), str(value).casefold()):
            return value
    raise _InvalidAnswer(f"choose one of {', '.join(choices)}")


def _parse_number(form_field: FormField, answer: str, number_type: type[int] | type[float]) -> int | float:
    try:
        number = number_type(answer)
    except ValueError:
        raise _InvalidAnswer("enter a whole number" if number_type is int else "enter a number") from None
    if form_field.minimum is not None and not number >= form_field.minimum:
        raise _InvalidAnswer(f"the value must be at least {form_field.minimum:g}")
    if form_field.maximum is not None and not number <= form_field.maximum:
        raise _InvalidAnswer(f"the value must be at most {form_field.maximum:g}")
    return number


def _check_text(form_field: FormField, answer: str) -> str:
    if len(answer) < form_field.min_length:
        raise _InvalidAnswer(f"the text must have at least {form_field.min_length} characters")
    if form_field.max_length is not None and len(answer) > form_field.max_length:
        raise _InvalidAnswer(f"the text may have at most {form_field.max_length} characters")
    return answer
