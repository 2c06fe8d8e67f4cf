"""Slash commands for tools, memory, voice and background work."""

from anyio import to_thread

from hark.app.sessions.handle import SessionHandle
from hark.app.voice import SpeechPreference
from hark.processes.background import BackgroundProcessError
from hark.tools.notes.notes import project_notes, user_notes

VOICE_MEANINGS = {
    SpeechPreference.ON: "every reply is also sent as a voice message",
    SpeechPreference.OFF: "replies are text only",
    SpeechPreference.AUTO: "a reply to a voice message is also sent as a voice message",
}


async def tools(session: SessionHandle, arguments: str) -> str:
    """List the tools."""
    rows = [f"{spec.name}: {spec.description.split('. ')[0].rstrip('.')}" for spec in session.engine.tools.specs]
    return "\n".join(rows)


async def mcp(session: SessionHandle, arguments: str) -> str:
    """List the MCP servers, or restart one."""
    servers = session.services.servers
    if servers is None:
        return "No MCP servers are configured; docs/mcp.md explains how to add one."
    action, _, name = arguments.partition(" ")
    if action == "restart":
        return servers.restart(name.strip(), lambda text: session.publish_notice("mcp", text))
    return "\n".join(status.text for status in servers.status()) if not action else "Use /mcp or /mcp restart NAME."


async def skills(session: SessionHandle, arguments: str) -> str:
    """List the skills."""
    return (
        "\n".join(session.services.skill_catalogs.summary_lines())
        or "No skills are installed. docs/skills.md explains how to find and install them."
    )


async def memory(session: SessionHandle, arguments: str) -> str:
    """Show the stored notes and the paths of their files."""
    paths = session.services.paths
    rows: list[str] = []
    for title, file in (
        ("About you", user_notes(paths.home)),
        ("About this project", project_notes(paths.home, paths.workspace)),
    ):
        notes = file.read()
        rows.extend([f"{title} ({file.path}):", *(f"- {note}" for note in notes)] if notes else [f"{title}: no notes."])
    return "\n".join(rows)


async def children(session: SessionHandle, arguments: str) -> str:
    """List the child agents, or stop one."""
    children_by_name = {child.id: child for child in session.children()}
    action, _, name = arguments.partition(" ")
    if action == "stop" and name.strip():
        found = [child for full, child in children_by_name.items() if full.endswith(name.strip())]
        if not found:
            return f"No child named {name.strip()}."
        settled = await found[0].interrupt("user")
        return f"Stopped {found[0].id}." if settled else f"{found[0].id} is not running."
    rows = [f"{name}: {'running' if child.is_busy_here else 'done'}" for name, child in children_by_name.items()]
    return "\n".join(rows) or "No child agents."


async def processes(session: SessionHandle, arguments: str) -> str:
    """List the background processes, or stop or detach one."""
    background = session.services.background
    action, _, name = arguments.partition(" ")
    if action in ("stop", "detach") and name.strip():
        process = background.get(session.id, name.strip())
        if process is None:
            return f"No process named {name.strip()}."
        try:
            if action == "detach":
                return background.detach(session.id, name.strip())
        except BackgroundProcessError as refused:
            return str(refused)
        await process.stop()
        return f"Stopped {process.name}."
    return "\n".join(map(str, background.list_processes(session.id))) or "No background processes."


async def voice(session: SessionHandle, arguments: str) -> str:
    """Show or change whether replies are spoken."""
    preferences = session.services.speech_preferences()
    if arguments:
        if arguments not in tuple(SpeechPreference):
            return "Use /voice on, /voice off or /voice auto."
        try:
            await to_thread.run_sync(preferences.save, session.id, SpeechPreference(arguments))
        except OSError as error:
            return f"The choice could not be saved: {error}."
    preference = preferences.get(session.id)
    return f"Voice is {preference} here: {VOICE_MEANINGS[preference]}. (/voice on|off|auto)"
