"""The tools for files, which share what they know of each session's reads."""

from hark.processes.cookies import Owner
from hark.protocol.tool import Tool
from hark.tools.files.edit import EditTool
from hark.tools.files.last_reads import LastReads
from hark.tools.files.listing import ListFolder
from hark.tools.files.patch import Patch
from hark.tools.files.read import Read
from hark.tools.files.search import SearchTool
from hark.tools.files.view_image import ViewImage
from hark.tools.files.write import Write


def file_tools(owner: Owner) -> list[Tool]:
    """Return all of them; what they start belongs to `owner`."""
    reads = LastReads()
    return [Read(reads), Write(reads), EditTool(reads), Patch(reads), ListFolder(), SearchTool(owner), ViewImage()]
