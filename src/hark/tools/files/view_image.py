"""The tool that shows a picture to the model."""

import base64
from pathlib import Path

from hark.protocol.messages import Attachment
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, tool_spec
from hark.tools.files.image_format import picture_of
from hark.tools.files.paths import FileName, content_of, resolve, shown

# Vendors refuse more than 5 MB of base64, which is a third longer than the file, and sides of more than 8,000 pixels.
LARGEST_BYTES = 5 * 1024 * 1024 * 3 // 4
LARGEST_SIDE = 8_000


class ViewImageArguments(ToolArguments, frozen=True):
    """See a picture: a PNG, JPEG, GIF or WebP file on this machine."""

    path: FileName


class ViewImage:
    """Returns pictures as attachments."""

    spec = tool_spec(ViewImageArguments, "view_image")

    async def run(self, arguments: ViewImageArguments, context: CallContext) -> ToolOutput:
        """Return the picture, if models can see it."""
        path = resolve(arguments.path, context.workspace)
        name = shown(path, context.workspace)
        content = content_of(path, context.workspace, LARGEST_BYTES, f"can be shown. {_smaller(path)}")
        try:
            picture = picture_of(content)
        except ToolError as refused:
            raise ToolError(f"{name} can't be shown: {refused}") from refused
        pixels = f"{picture.width} x {picture.height} pixels"
        if max(picture.width, picture.height) > LARGEST_SIDE:
            raise ToolError(f"{name} has {pixels}; at most {LARGEST_SIDE} a side can be shown. {_smaller(path)}")
        data = base64.b64encode(content).decode()
        text = f"[{name}: {picture.media_type}, {pixels}, {len(content):,} bytes]"
        return ToolOutput(text, attachments=(Attachment(picture.media_type, path.name, data),))


def _smaller(path: Path) -> str:
    return (
        "Make it smaller first, for example: "
        f"ffmpeg -i {path.name} -vf scale=1600:-1 small.png, or convert {path.name} -resize 1600x1600 small.png."
    )
