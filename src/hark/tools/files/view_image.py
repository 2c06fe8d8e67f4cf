"""The `view_image` tool: shows an image file to the model."""

import base64
from pathlib import Path

from hark.protocol.messages import Attachment
from hark.protocol.tool import CallContext, ToolError, ToolOutput
from hark.tools.arguments import ToolArguments, tool_spec
from hark.tools.files.image_format import read_image_info
from hark.tools.files.paths import FilePath, display_path, read_content, resolve_path

# Vendors reject images above 5 MB of base64, which is a third longer than the file, and sides above 8,000 pixels.
MAX_BYTES = 5 * 1024 * 1024 * 3 // 4
MAX_SIDE_PIXELS = 8_000


class ViewImageArguments(ToolArguments, frozen=True):
    """View an image: a PNG, JPEG, GIF or WebP file on this machine."""

    path: FilePath


class ViewImageTool:
    """The tool that returns images as attachments."""

    spec = tool_spec(ViewImageArguments, "view_image")

    async def run(self, arguments: ViewImageArguments, context: CallContext) -> ToolOutput:
        """Return the image as an attachment, if its format and size are supported."""
        path = resolve_path(arguments.path, context.workspace)
        name = display_path(path, context.workspace)
        content = read_content(path, context.workspace, MAX_BYTES, f"can be shown. {_resize_hint(path)}")
        try:
            image = read_image_info(content)
        except ToolError as error:
            raise ToolError(f"{name} can't be shown: {error}") from error
        pixels = f"{image.width} x {image.height} pixels"
        if max(image.width, image.height) > MAX_SIDE_PIXELS:
            raise ToolError(f"{name} has {pixels}; the limit is {MAX_SIDE_PIXELS} per side. {_resize_hint(path)}")
        data = base64.b64encode(content).decode()
        text = f"[{name}: {image.media_type}, {pixels}, {len(content):,} bytes]"
        return ToolOutput(text, attachments=(Attachment(image.media_type, path.name, data),))


def _resize_hint(path: Path) -> str:
    return (
        "Resize it first, for example: "
        f"ffmpeg -i {path.name} -vf scale=1600:-1 small.png, or convert {path.name} -resize 1600x1600 small.png."
    )
