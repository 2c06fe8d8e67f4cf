"""The parsers and renderers of text from models, users and repositories, each as a function of the raw bytes.

A target raises nothing for any input. It catches only the errors that its callers expect.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from hark.app.settings import SettingsError
from hark.app.settings.config_file import replace_routes
from hark.app.settings.types import RouteSettings
from hark.command_safety.analysis import analyze_command
from hark.disk.gitignore import parse_rules
from hark.processes.output import OutputBuffer
from hark.protocol.schedules import ScheduleRefused
from hark.protocol.tool import ToolError
from hark.providers.anthropic.reply import AnthropicDecoder
from hark.providers.openai.chat_reply import ChatDecoder
from hark.providers.openai.responses_reply import ResponsesDecoder
from hark.providers.reply_parser import ReplyDecoder, ReplyParser
from hark.providers.sse import EventTooLong, SseParser
from hark.schedules.cron import parse_cron
from hark.schedules.time_phrases import parse_time
from hark.store.search_text import make_snippet, parse_phrases, split_words
from hark.surfaces.acp.tool_calls import fence_text, parse_hunks
from hark.surfaces.chat.split_text import split_text
from hark.surfaces.discord.markup import to_discord_markdown
from hark.surfaces.matrix.outgoing import to_html as to_matrix_html
from hark.surfaces.slack.mrkdwn import to_mrkdwn
from hark.surfaces.slack.mrkdwn import to_plain_text as slack_to_plain_text
from hark.surfaces.telegram.markup import to_html as to_telegram_html
from hark.surfaces.terminal.early_input import EarlyInput
from hark.surfaces.terminal.pending_messages import find_images
from hark.surfaces.terminal.widgets.streamed_reply import ReplyBlockSplitter
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.webhook.template import Template
from hark.text.columns import fit_to_columns, to_plain_text, wrap_to_columns
from hark.text.lenient_json import parse_object
from hark.text.redaction import detect_secret, find_secrets_in_url, redact_secrets
from hark.text.safe_text import sanitize_input, sanitize_text
from hark.text.status_text import format_call_title
from hark.tools.arguments import decode_arguments, tool_spec
from hark.tools.files.diffs import unified_diff
from hark.tools.files.globs import parse_glob
from hark.tools.files.nearest_match import explain_mismatch
from hark.tools.files.patching.format import BadPatch
from hark.tools.files.patching.parse import parse_patch
from hark.tools.notes.notes import normalize_note
from hark.tools.shell import ShellArguments
from hark.tools.skills.front_matter import BadFrontMatter, split_document
from hark.tools.web.address import parse_address
from hark.tools.web.html.text import html_to_article
from hark.tools.web.page import WebPage
from hark.tools.web.text import decode_body, remove_invisible
from hark.voice.program_speaker import split_sentences

Target = Callable[[bytes], None]


def _on_text(run: Callable[[str], object], *expected: type[Exception]) -> Target:
    def target(data: bytes) -> None:
        with suppress(*expected):
            run(data.decode(errors="replace"))

    return target


def _render_reply(text: str) -> None:
    splitter = ReplyBlockSplitter(lambda _: None)
    splitter.add(text)
    splitter.finish()
    console = Console(file=StringIO(), width=80)
    for block in splitter.blocks:
        console.print(block.draw())


def _halves(text: str) -> tuple[str, str]:
    half = len(text) // 2
    return text[:half], text[half:]


def _match_ignore_rules(data: bytes) -> None:
    rules, path = data[: len(data) // 2], data[len(data) // 2 :][:4096].replace(b"\0", b"")
    for rule in parse_rules(rules):
        rule.matches(path, is_folder=True)


def _match_glob(text: str) -> None:
    pattern, path = _halves(text)
    parse_glob(pattern).matches(path[:4096])


def _feed_early_input(data: bytes) -> None:
    EarlyInput().feed(data)


def _search(text: str) -> None:
    split_words(text)
    make_snippet(text, parse_phrases(text) or [("a",)])


def _parse_events(data: bytes) -> None:
    parser = SseParser(max_event_bytes=1_000_000)
    with suppress(EventTooLong):
        for at in range(0, len(data), 1_024):
            parser.feed(data[at : at + 1_024])
        parser.finish()


def _parse_reply(make_decoder: Callable[[], ReplyDecoder]) -> Target:
    def target(data: bytes) -> None:
        ReplyParser(make_decoder()).parse_events(data.split(b"\n"))

    return target


def _receive_output(data: bytes) -> None:
    async def receive() -> None:
        buffer = OutputBuffer(lambda _: None)
        for at in range(0, len(data), 1_024):
            buffer.receive(data[at : at + 1_024])
        buffer.close()
        assert buffer.text is not None

    asyncio.run(receive())


def _decode_arguments(data: bytes) -> None:
    with suppress(msgspec.MsgspecError, UnicodeError, RecursionError, ToolError):
        decode_arguments(_SPEC, msgspec.json.decode(data, type=dict[str, Any]))


def _decode_page(data: bytes) -> None:
    decode_body(WebPage("https://example.org/", 200, "text/html", data))


_SPEC = tool_spec(ShellArguments, "shell", is_changing=True)
_ROUTE = RouteSettings(name="main", provider="openai", model="m")
_FOLDER = Path(os.devnull).parent / "nonexistent"

TARGETS: dict[str, Target] = {
    "command analysis": _on_text(lambda text: analyze_command(text, _FOLDER, _FOLDER)),
    "ignore rules": _match_ignore_rules,
    "globs": _on_text(_match_glob, ValueError),
    "patch": _on_text(parse_patch, BadPatch),
    "diff": _on_text(lambda text: unified_diff(*_halves(text), "name")),
    "mismatch": _on_text(lambda text: explain_mismatch(*_halves(text))),
    "front matter": _on_text(lambda text: split_document(f"---\n{text}\n---\n"), BadFrontMatter),
    "document": _on_text(split_document, BadFrontMatter),
    "page": _on_text(lambda text: asyncio.run(html_to_article(text, "https://example.org/"))),
    "page bytes": _decode_page,
    "invisible characters": _on_text(remove_invisible),
    "address": _on_text(lambda text: parse_address(text, "https://example.org/a/"), ToolError),
    "note": _on_text(normalize_note, ToolError),
    "cron": _on_text(parse_cron, ScheduleRefused),
    "time phrase": _on_text(lambda text: parse_time(text, 1_790_000_000.0, UTC), ScheduleRefused),
    "settings": _on_text(lambda text: replace_routes(text, _ROUTE), SettingsError),
    "template": _on_text(lambda text: Template(text).fill({"a": "b"}), ValueError, ApiError),
    "secrets": _on_text(detect_secret),
    "redaction": _on_text(lambda text: redact_secrets(text, [text[:8], *find_secrets_in_url(text)])),
    "terminal text": _on_text(sanitize_text),
    "terminal input": _on_text(sanitize_input),
    "early input": _feed_early_input,
    "columns": _on_text(lambda text: (to_plain_text(text), wrap_to_columns(text, 80), fit_to_columns(text, 80))),
    "call title": _on_text(lambda text: format_call_title("shell", text)),
    "terminal reply": _on_text(_render_reply),
    "images of a message": _on_text(lambda text: find_images(text, _FOLDER)),
    "hunks for editors": _on_text(parse_hunks),
    "fence for editors": _on_text(fence_text),
    "search": _on_text(_search),
    "spoken sentences": _on_text(lambda text: list(split_sentences(text))),
    "chat messages": _on_text(lambda text: split_text(text, 1_000)),
    "telegram": _on_text(to_telegram_html),
    "slack": _on_text(to_mrkdwn),
    "slack messages": _on_text(lambda text: slack_to_plain_text(text, {}, "U1")),
    "discord": _on_text(lambda text: to_discord_markdown(text, 2_000)),
    "matrix": _on_text(to_matrix_html),
    "shell output": _receive_output,
    "tool arguments": _decode_arguments,
    "arguments with mistakes": _on_text(parse_object, ValueError),
    "server-sent events": _parse_events,
    "chat reply": _parse_reply(ChatDecoder),
    "responses reply": _parse_reply(ResponsesDecoder),
    "anthropic reply": _parse_reply(AnthropicDecoder),
}
