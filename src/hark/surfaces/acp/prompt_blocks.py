"""What a prompt's blocks say, as a message."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from hark.protocol.messages import Attachment

Block = TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message: its text, and the files that came with it."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def read_prompt(blocks: Sequence[Block]) -> PromptMessage:
    """Return the message. Links stand where they stood in the text; what was embedded comes behind it."""
    words: list[str] = []
    behind: list[str] = []
    files: list[Attachment] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                words.append(block.text)
            case ResourceContentBlock():
                words.append(f"[{block.name}]({place_of(block.uri)})")
            case ImageContentBlock():
                files.append(Attachment(block.mime_type, _name(block.uri or ""), block.data))
            case EmbeddedResourceContentBlock():
                _embed(block, words, behind, files)
            case AudioContentBlock():
                files.append(Attachment(block.mime_type, "a recording", block.data))
    return PromptMessage("\n\n".join(part for part in ("".join(words), *behind) if part), tuple(files))


def place_of(uri: str) -> str:
    """Return the path of a file, and any other address as it is."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri


def _embed(block: EmbeddedResourceContentBlock, words: list[str], behind: list[str], files: list[Attachment]) -> None:
    resource = block.resource
    place = place_of(resource.uri)
    if isinstance(resource, TextResourceContents):
        words.append(f"[{_name(resource.uri)}]({place})")
        behind.append(f'<context place="{place}">\n{resource.text}\n</context>')
    else:
        files.append(Attachment(resource.mime_type or "application/octet-stream", _name(resource.uri), resource.blob))


def _name(uri: str) -> str:
    return unquote(urlsplit(uri).path.rstrip("/").rpartition("/")[2]) or uri
