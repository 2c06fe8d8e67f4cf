"""Creates the built-in tools, and converts the tools that a program supplies."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from hark.app.background_work import BackgroundWork
from hark.app.services import Services
from hark.processes.cookies import ProcessOwner
from hark.protocol.rules import ChildrenOnMessage
from hark.protocol.store import Store
from hark.protocol.tool import Tool
from hark.tools.shell import ShellTool
from hark.tools.web.settings import WebSettings

if TYPE_CHECKING:
    from hark.tools.children import OpenChild


def builtin_tools(services: Services, store: Store, open_child: "OpenChild", work: BackgroundWork) -> list[Tool]:
    """Return the built-in tools, except the web tools."""
    session_tools = _session_tools(services, store, open_child, work)
    return [*file_tools(services.owner), *_process_tools(services, work), *session_tools]


def web_tools(services: Services, web: WebSettings) -> list[Tool]:
    """Return the web tools for these settings."""
    from hark.tools.web.fetch import FetchTool
    from hark.tools.web.search import make_search_tools

    def is_denied(url: str) -> bool:
        """Return whether a current deny rule matches a URL. Also called for each redirect."""
        return any(fnmatchcase(f"fetch:{url}", pattern) for pattern in services.settings.approvals.deny)

    return [FetchTool(web, is_denied), *make_search_tools(web)]


def _process_tools(services: Services, work: BackgroundWork) -> list[Tool]:
    from hark.tools.process_tool import ProcessTool

    process_tool = ProcessTool(services.background, work)
    return [ShellTool(services.launcher, services.shell_states), process_tool, services.python]


def file_tools(owner: ProcessOwner) -> list[Tool]:
    """Return the file tools, which share a record of the files that each session has read."""
    from hark.tools.files.edit import EditTool
    from hark.tools.files.last_reads import LastReads
    from hark.tools.files.listing import ListTool
    from hark.tools.files.patch import PatchTool
    from hark.tools.files.read import ReadTool
    from hark.tools.files.search import SearchTool
    from hark.tools.files.view_image import ViewImageTool
    from hark.tools.files.write import WriteTool

    reads = LastReads()
    writers: list[Tool] = [WriteTool(reads), EditTool(reads), PatchTool(reads)]
    return [ReadTool(reads, owner), *writers, ListTool(), SearchTool(owner), ViewImageTool()]


def _session_tools(services: Services, store: Store, open_child: "OpenChild", work: BackgroundWork) -> list[Tool]:
    from hark.tools.ask import AskTool
    from hark.tools.delegate import DelegateTool
    from hark.tools.notes.memory import MemoryTool
    from hark.tools.notes.recall import RecallTool
    from hark.tools.notes.todo import TodoTool
    from hark.tools.skills.skills import SkillsTool

    def continues() -> bool:
        return services.settings.delivery.children is ChildrenOnMessage.CONTINUE

    home = services.paths.home
    notes: list[Tool] = [TodoTool(home), MemoryTool(home), RecallTool(store.search)]
    return [*notes, SkillsTool(services.skill_catalogs), AskTool(), DelegateTool(open_child, work.children, continues)]


def convert_to_tools(items: Iterable[Any], owner: ProcessOwner) -> list[Tool]:
    """Return the tools that a program supplies. A function becomes a tool whose processes belong to `owner`."""
    import inspect

    from hark.tools.function import FunctionTool, tool

    made: list[Tool] = []
    for item in items:
        found: Tool = tool(item) if inspect.isroutine(item) else item
        made.append(found.owned_by(owner) if isinstance(found, FunctionTool) else found)
    return made
