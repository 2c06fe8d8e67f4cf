"""Converting the blocks of an ACP prompt to a message."""

from acp import (
    audio_block,
    embedded_blob_resource,
    embedded_text_resource,
    image_block,
    resource_block,
    resource_link_block,
    text_block,
)

from hark.protocol.messages import Attachment
from hark.surfaces.acp.prompt import PromptMessage, read_prompt


def test_links_keep_their_position_and_embedded_text_follows_the_message() -> None:
    blocks = [
        text_block("See "),
        resource_link_block("a b.py", "file:///x/a%20b.py"),
        text_block(" and "),
        resource_block(embedded_text_resource("file:///x/c.py", "code")),
        text_block("."),
    ]
    text = 'See [a b.py](/x/a b.py) and [c.py](/x/c.py).\n\n<context place="/x/c.py">\ncode\n</context>'
    assert read_prompt(blocks) == PromptMessage(text)


def test_images_and_other_files_are_attached() -> None:
    blocks = [
        image_block("AAAA", "image/png", uri="file:///x/p.png"),
        resource_block(embedded_blob_resource("file:///x/d.bin", "BBBB")),
        audio_block("CCCC", "audio/wav"),
    ]
    assert read_prompt(blocks).attachments == (
        Attachment("image/png", "p.png", "AAAA"),
        Attachment("application/octet-stream", "d.bin", "BBBB"),
        Attachment("audio/wav", "a recording", "CCCC"),
    )


def test_link_with_a_web_url_is_passed_on_unchanged() -> None:
    assert read_prompt([resource_link_block("issue", "https://host/a?b=1")]).text == "[issue](https://host/a?b=1)"
