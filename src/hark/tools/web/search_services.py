"""The kinds of search services: how each is asked, and where its results stand."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus

import msgspec
from msgspec import Struct, field

MAX_COUNT = 20


class SearchRequest(Struct, frozen=True):
    """One request to a search service."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: dict[str, Any] | None = None


class SearchResult(Struct, frozen=True):
    """One result."""

    title: str
    url: str
    snippet: str


class SearchService(Struct, frozen=True):
    """A kind of service. `usual_url` is where it lives unless told; `needs_key`: it answers nobody without one."""

    usual_url: str
    needs_key: bool
    ask: Callable[[str, str, int, str], SearchRequest]
    read: Callable[[bytes], list[SearchResult]]


class _Result(Struct):
    title: str | None = None
    url: str | None = None
    content: str | None = None
    description: str | None = None

    def found(self) -> SearchResult:
        return SearchResult(self.title or "", self.url or "", self.content or self.description or "")


class _Results(Struct):
    results: list[_Result]


class _Brave(Struct):
    web: _Results | None = None


def filled(template: str, query: str, count: int) -> str:
    """Return the address with the query and the count in their places; without a place the query goes last."""
    if "{query}" not in template:
        template += ("&" if "?" in template else "?") + "q={query}"
    return template.replace("{query}", quote_plus(query)).replace("{count}", str(count))


def _ask_searxng(template: str, query: str, count: int, key: str) -> SearchRequest:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = filled(template, query, count)
    return SearchRequest("GET", url if "format=" in url else f"{url}&format=json", headers)


def _ask_brave(template: str, query: str, count: int, key: str) -> SearchRequest:
    return SearchRequest("GET", filled(template, query, count), {"X-Subscription-Token": key})


def _ask_tavily(template: str, query: str, count: int, key: str) -> SearchRequest:
    return SearchRequest("POST", template, {"Authorization": f"Bearer {key}"}, {"query": query, "max_results": count})


def _read_plain(body: bytes) -> list[SearchResult]:
    return [result.found() for result in msgspec.json.decode(body, type=_Results).results]


def _read_brave(body: bytes) -> list[SearchResult]:
    web = msgspec.json.decode(body, type=_Brave).web
    return [result.found() for result in web.results] if web else []


KINDS = {
    "searxng": SearchService("", needs_key=False, ask=_ask_searxng, read=_read_plain),
    "brave": SearchService(
        "https://api.search.brave.com/res/v1/web/search?q={query}&count={count}",
        needs_key=True,
        ask=_ask_brave,
        read=_read_brave,
    ),
    "tavily": SearchService("https://api.tavily.com/search", needs_key=True, ask=_ask_tavily, read=_read_plain),
}
