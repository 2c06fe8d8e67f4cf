"""The document of the API: it tells of every address, and of every way in which it answers."""

from pathlib import Path
from typing import Any

from starlette.routing import Route

from hark.surfaces.web.app import routes_of
from tests.fakes.models.behaviours import text
from tests.surfaces.web.web_fixture import served


async def test_every_address_and_method_is_told_and_none_that_is_not_there(tmp_path: Path) -> None:
    async with served(tmp_path) as world:
        _, told = await world.call("GET", "/openapi.json")
        routes: list[Route] = routes_of(world.place)
        there = {
            (route.path.replace(":path", ""), method)
            for route in routes
            for method in (route.methods or set[str]()) - {"HEAD"}
        }
    methods = {"get", "post", "patch", "delete", "put"}
    documented = {
        (path, method.upper()) for path, item in told["paths"].items() for method in item if method in methods
    }
    assert documented == there


async def test_refusals_that_any_address_may_have_are_told(tmp_path: Path) -> None:
    async with served(tmp_path, [text(["ok"])], token="a-long-token") as world:
        _, told = await world.call("GET", "/openapi.json", headers={"Authorization": "Bearer a-long-token"})
        operations: list[tuple[str, str, Any]] = [
            (path, method, operation)
            for path, item in told["paths"].items()
            for method, operation in item.items()
            if method != "parameters"
        ]
        for path, method, operation in operations:
            url = path.replace("{", "").replace("}", "")
            for headers in ({}, {"Origin": "null"}, {"Host": "evil.example"}):
                status, _, _ = await world.fetch(url, method.upper(), headers=headers)
                assert str(status) in operation["responses"], (method, path, status)
