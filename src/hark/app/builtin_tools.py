"""The agent's own tools, made of the parts; and those that a program brings."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from hark.app.services import Services
from hark.processes.cookies import Owner
from hark.protocol.store import Store
from hark.protocol.tool import Tool
from hark.tools.shell import Shell
from hark.tools.web.settings import WebSettings

if TYPE_CHECKING:
    from hark.tools.delegate import OpenChild


def own_tools(parts: Services, store: Store, open_child: "OpenChild") -> list[Tool]:
    """Return the agent's own tools, but for those of the web."""
    return [*file_tools(parts.owner), *_process_tools(parts), *_other_tools(parts, store, open_child)]


def web_tools(parts: Services, web: WebSettings) -> list[Tool]:
    """Return the tools that reach out, as these settings want them."""
    from hark.tools.web.fetch import Fetch
    from hark.tools.web.search import search_tools

    def is_denied(url: str) -> bool:
        """A redirect leads to addresses that no rule has seen yet. The rules of now count, in a running turn, too."""
        return any(fnmatchcase(f"fetch:{url}", pattern) for pattern in parts.settings.approvals.deny)

    return [Fetch(web, is_denied), *search_tools(web)]


def _process_tools(parts: Services) -> list[Tool]:
    from hark.tools.process_tool import ProcessTool

    return [Shell(parts.launcher, parts.states), ProcessTool(parts.background), parts.python]


def file_tools(owner: Owner) -> list[Tool]:
    """Return the tools for files, which share what they know of each session's reads."""
    from hark.tools.files.edit import EditTool
    from hark.tools.files.last_reads import LastReads
    from hark.tools.files.listing import ListFolder
    from hark.tools.files.patch import Patch
    from hark.tools.files.read import Read
    from hark.tools.files.search import SearchTool
    from hark.tools.files.view_image import ViewImage
    from hark.tools.files.write import Write

    reads = LastReads()
    return [Read(reads), Write(reads), EditTool(reads), Patch(reads), ListFolder(), SearchTool(owner), ViewImage()]


def _other_tools(parts: Services, store: Store, open_child: "OpenChild") -> list[Tool]:
    from hark.tools.ask import Ask
    from hark.tools.delegate import Delegate
    from hark.tools.notes.memory import MemoryTool
    from hark.tools.notes.recall import Recall
    from hark.tools.notes.todo import Todo
    from hark.tools.skills.skills import Skills

    home = parts.places.home
    return [Todo(home), MemoryTool(home), Recall(store.search), Skills(parts.shelves), Ask(), Delegate(open_child)]


def as_tools(given: Iterable[Any], owner: Owner) -> list[Tool]:
    """Return the tools that a program brings: functions become tools whose processes are ours."""
    import inspect

    from hark.tools.function import FunctionTool, tool

    made: list[Tool] = []
    for one in given:
        found: Tool = tool(one) if inspect.isroutine(one) else one
        made.append(found.owned_by(owner) if isinstance(found, FunctionTool) else found)
    return made
