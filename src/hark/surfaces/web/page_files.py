"""The files of the web page: read from the package, nothing else."""

import mimetypes
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from hark.surfaces.web.api.errors import ApiError

FOLDER = Path(__file__).parent / "page"


class PageFiles:
    """Serves a folder: only what lies in it, as the types that their names say."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder.resolve()

    async def index(self, request: Request) -> Response:
        """The page itself."""
        return self._file("index.html")

    async def file(self, request: Request) -> Response:
        """A file that the page needs."""
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        try:
            path = (self._folder / name).resolve()
            is_there = path.is_relative_to(self._folder) and path.is_file()
        except (OSError, ValueError):
            is_there = False
        if not is_there:
            raise ApiError(404, "not_found", "There is no such file of the page.")
        path = (self._folder / name).resolve()
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return FileResponse(path, media_type=kind, headers={"Cache-Control": "no-cache"})
