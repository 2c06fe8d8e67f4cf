"""A server's answers as a tool's output: text that is bounded, pictures and files beside it."""

from collections.abc import Iterable, Sequence

import mcp_types as types
import msgspec

from hark.protocol.messages import Attachment, Effect
from hark.protocol.tool import ToolOutput

TEXT_CHARACTERS = 100_000
ATTACHMENT_CHARACTERS = 14_000_000  # of base64: some 10 MB
ATTACHMENTS = 20

Content = types.ContentBlock | types.TextResourceContents | types.BlobResourceContents


def tool_output(result: types.CallToolResult) -> ToolOutput:
    """Return what a tool of the server said."""
    output = _output(result.content, is_error=result.is_error)
    if result.structured_content is None or any(isinstance(block, types.TextContent) for block in result.content):
        # Servers that send structure send its text as well, for those who don't read the structure.
        return output
    structure = msgspec.json.encode(result.structured_content).decode()
    return msgspec.structs.replace(output, text=bounded("\n".join(filter(None, (output.text, structure)))))


def resource_output(result: types.ReadResourceResult) -> ToolOutput:
    """Return what is in a resource."""
    return _output(result.contents)


def prompt_output(result: types.GetPromptResult) -> ToolOutput:
    """Return a prompt's messages, each with who says it."""
    blocks: list[Content] = []
    for message in result.messages:
        blocks += [types.TextContent(text=f"{message.role}:"), message.content]
    return _output(blocks)


def resources_output(
    resources: Iterable[types.Resource], templates: Iterable[types.ResourceTemplate], server: str
) -> ToolOutput:
    """Return the names of resources, one a line."""
    lines = [_line(resource.uri, resource.title or resource.name, resource.description) for resource in resources]
    lines += [_line(one.uri_template, one.title or one.name, one.description) for one in templates]
    return ToolOutput(bounded("\n".join(lines) or f"The server {server} has no resources."))


def prompts_output(prompts: Sequence[types.Prompt], server: str) -> ToolOutput:
    """Return the names of prompts with their arguments, one a line."""
    lines = [
        _line(f"{prompt.name}({', '.join(_argument(one) for one in prompt.arguments or ())})", "", prompt.description)
        for prompt in prompts
    ]
    return ToolOutput(bounded("\n".join(lines) or f"The server {server} has no prompts."))


def bounded(text: str) -> str:
    """Return the text, without its middle when it is too long."""
    cut = len(text) - TEXT_CHARACTERS
    if cut <= 0:
        return text
    half = TEXT_CHARACTERS // 2
    return f"{text[:half]}\n[... {cut:,} characters cut here ...]\n{text[-half:]}"


def _output(blocks: Iterable[Content], *, is_error: bool = False) -> ToolOutput:
    texts: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks:
        text, attachment = _read(block)
        if attachment and (len(attachments) >= ATTACHMENTS or len(attachment.data) > ATTACHMENT_CHARACTERS):
            text, attachment = f"[left out, as it is too much: {attachment.media_type} {attachment.name}]", None
        if text:
            texts.append(text)
        if attachment:
            attachments.append(attachment)
    return ToolOutput(bounded("\n".join(texts)), is_error, Effect.COMPLETED, tuple(attachments))


def _read(block: Content) -> tuple[str, Attachment | None]:
    match block:
        case types.TextContent() | types.TextResourceContents():
            return block.text, None
        case types.ImageContent() | types.AudioContent():
            return f"[{block.mime_type}, attached]", Attachment(block.mime_type, data=block.data)
        case types.ResourceLink():
            return _line(block.uri, block.title or block.name, block.description), None
        case types.EmbeddedResource():
            text, attachment = _read(block.resource)
            return (text if attachment else f"[{block.resource.uri}]\n{text}"), attachment
        case types.BlobResourceContents():
            media_type = block.mime_type or "application/octet-stream"
            return f"[{block.uri}, attached]", Attachment(media_type, name=block.uri, data=block.blob)


def _line(name: str, title: str, description: str | None) -> str:
    return " - ".join(part for part in (name, title, (description or "").strip()) if part)


def _argument(argument: types.PromptArgument) -> str:
    return argument.name if argument.required else f"{argument.name}?"
