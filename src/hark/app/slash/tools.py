"""Slash commands about what the agent can do, and what it has running."""

from hark.app.sessions.handle import SessionHandle
from hark.app.voice import SpeechPreference
from hark.processes.background import BackgroundRefused
from hark.tools.notes.notes import notes_of_person, notes_of_project

VOICE_MEANINGS = {
    SpeechPreference.ON: "every reply comes as a voice message, too",
    SpeechPreference.OFF: "replies are written only",
    SpeechPreference.AUTO: "a reply to a voice message comes as a voice message, too",
}


async def tools(session: SessionHandle, words: str) -> str:
    """List the tools."""
    rows = [f"{spec.name}: {spec.description.split('. ')[0].rstrip('.')}" for spec in session.bench.tools.specs]
    return "\n".join(rows)


async def mcp(session: SessionHandle, words: str) -> str:
    """List the MCP servers."""
    servers = session.parts.servers
    if servers is None:
        return "There are no MCP servers in the settings; docs/mcp.md says how to add one."
    rows = [
        f"{one.name}: {one.state}, {len(one.tools)} tools" + (f"; {one.last_error}" if one.last_error else "")
        for one in servers.status()
    ]
    return "\n".join(rows)


async def skills(session: SessionHandle, words: str) -> str:
    """List the skills."""
    return "\n".join(session.parts.shelves.one_liners()) or "There are no skills; `hark skills search` finds some."


async def memory(session: SessionHandle, words: str) -> str:
    """Show what is remembered, and where it stands."""
    places = session.parts.places
    rows: list[str] = []
    for title, file in (
        ("About you", notes_of_person(places.home)),
        ("On this project", notes_of_project(places.home, places.workspace)),
    ):
        notes = file.read()
        rows.extend([f"{title} ({file.path}):", *(f"- {note}" for note in notes)] if notes else [f"{title}: nothing."])
    return "\n".join(rows)


async def children(session: SessionHandle, words: str) -> str:
    """List the child agents, or stop one alone."""
    known = {child.id: child for child in session.children()}
    action, _, name = words.partition(" ")
    if action == "stop" and name.strip():
        found = [child for full, child in known.items() if full.endswith(name.strip())]
        if not found:
            return f"There is no child {name.strip()}."
        settled = await found[0].interrupt("user")
        return f"{found[0].id} was stopped." if settled else f"{found[0].id} does not run."
    rows = [f"{name}: {'runs' if child.is_busy_here else 'is done'}" for name, child in known.items()]
    return "\n".join(rows) or "There are no children."


async def processes(session: SessionHandle, words: str) -> str:
    """List what runs in the background, stop one of it, or let go of it."""
    background = session.parts.background
    action, _, name = words.partition(" ")
    if action in ("stop", "detach") and name.strip():
        process = background.get(session.id, name.strip())
        if process is None:
            return f"There is no process {name.strip()}."
        try:
            if action == "detach":
                return background.detach(session.id, name.strip())
        except BackgroundRefused as refused:
            return str(refused)
        await process.stop()
        return f"{process.name} was stopped."
    return "\n".join(map(str, background.of(session.id))) or "Nothing runs in the background."


async def voice(session: SessionHandle, words: str) -> str:
    """Show or change whether replies are spoken."""
    wishes = session.parts.wishes()
    if words:
        if words not in tuple(SpeechPreference):
            return "Say /voice on, /voice off or /voice auto."
        try:
            wishes.keep(session.id, SpeechPreference(words))
        except OSError as error:
            return f"It could not be kept: {error}."
    wish = wishes.of(session.id)
    return f"Voice is {wish} here: {VOICE_MEANINGS[wish]}. (/voice on|off|auto)"
