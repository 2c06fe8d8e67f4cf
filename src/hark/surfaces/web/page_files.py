"""The files of the web page: read from the package, nothing else."""

import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from hark.surfaces.web.api.context import WebContext
from hark.surfaces.web.api.errors import ApiError

FOLDER = (Path(__file__).parent / "page").resolve()


async def index(web: WebContext, request: Request) -> Response:
    """Return the web page."""
    return _file("index.html")


async def file(web: WebContext, request: Request) -> Response:
    """Return a file of the web page."""
    return _file(request.path_params["name"])


def _file(name: str) -> Response:
    """Return a file that lies in the folder, with the type that its name implies."""
    try:
        path = (FOLDER / name).resolve()
        is_there = path.is_relative_to(FOLDER) and path.is_file()
    except (OSError, ValueError):
        path, is_there = FOLDER, False
    if not is_there:
        raise ApiError(404, "not_found", "There is no such file of the page.")
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return FileResponse(path, media_type=kind, headers={"Cache-Control": "no-cache"})
