"""The files of the web page, served from this package only."""

import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError

PAGE_FOLDER = (Path(__file__).parent / "page").resolve()


async def get_index(web: WebContext, request: Request) -> Response:
    """Return the web page."""
    return _file_response("index.html")


async def get_page_file(web: WebContext, request: Request) -> Response:
    """Return a file of the web page."""
    return _file_response(request.path_params["name"])


def _file_response(name: str) -> Response:
    """Return a file from the page folder, with the media type for its name."""
    try:
        path = (PAGE_FOLDER / name).resolve()
        is_found = path.is_relative_to(PAGE_FOLDER) and path.is_file()
    except (OSError, ValueError):
        path, is_found = PAGE_FOLDER, False
    if not is_found:
        raise ApiError(404, "not_found", "The page has no such file.")
    media_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return FileResponse(path, media_type=media_type, headers={"Cache-Control": "no-cache"})
