"""Exports a conversation as Markdown or as rows for JSON."""

import msgspec

from hark.engine.session.state import SessionState
from hark.protocol.messages import AssistantMessage, CallResult, Message, Note, UserMessage

RESULT_CHARACTERS = 500


def as_rows(state: SessionState) -> list[dict[str, object]]:
    """Return the transcript as rows for JSON, one per message."""
    rows: list[dict[str, object]] = []
    for message, turn in zip(state.transcript.messages, state.transcript.turns, strict=True):
        rows.append({"text": "", **msgspec.to_builtins(message), "turn": turn})
    return rows


def as_markdown(state: SessionState) -> str:
    """Return the transcript as Markdown."""
    title = f"# {state.title or 'A conversation'}\n"
    return "\n".join([title, *(_message_markdown(message) for message in state.transcript.messages)])


def _message_markdown(message: Message) -> str:
    match message:
        case UserMessage():
            return f"**{message.author or 'you'}:** {message.text}\n"
        case AssistantMessage():
            calls = "".join(f"\n`{call.name} {call.arguments}`" for call in message.calls)
            return f"**hark:** {message.text}{' …' if message.is_partial else ''}{calls}\n"
        case CallResult():
            return f"> {message.name} ({message.effect}): {message.text[:RESULT_CHARACTERS]}\n"
        case Note():
            return f"_{message.text}_\n"
