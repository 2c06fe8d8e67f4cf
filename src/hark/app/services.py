"""The services that all sessions share. They outlive turns and sessions."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from hark.app.background_work import BackgroundWork, Change
from hark.app.global_pause import PauseFile
from hark.app.settings import SettingsError
from hark.app.settings.types import Settings
from hark.app.slash.stop_words import WordList
from hark.processes.background import BackgroundProcesses
from hark.processes.cookies import DetachedProcesses, ProcessOwner
from hark.processes.launcher import Launcher
from hark.processes.shell import ShellStates
from hark.protocol.commands import Delivery
from hark.tools.python import PythonTool
from hark.tools.skills.catalog import SkillCatalogCache, skill_folders
from hark.tools.toolbox import ToolSource

if TYPE_CHECKING:
    from hark.app.voice import AgentNarrator, SpeechPreferences
    from hark.mcp.servers import Servers
    from hark.mcp.settings import ServerSettings
    from hark.protocol.speech import Speaker, Transcriber
    from hark.store.schedule_store import SqliteScheduleStore
    from hark.voice.inbox import TranscribingVoiceInbox


MAX_RECENT_IDS = 10_000
PROGRAM_SURFACES = ("", "python", "oneshot", "schedule", "v1")  # no user types the messages of these surfaces


@dataclass(frozen=True, slots=True)
class HomePaths:
    """The paths of Hark's home directory and of the agent's workspace."""

    home: Path
    workspace: Path

    @property
    def detached_file(self) -> Path:
        """The file with the cookies of processes that a user has detached."""
        return self.home / "detached"


class RecentIds:
    """The most recent message ids of all sessions, up to a maximum. The oldest ids are dropped first."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], None] = {}

    def add(self, session: str, message: str) -> bool:
        """Add an id. Return False if it was already known."""
        if (session, message) in self._ids:
            return False
        self._ids[session, message] = None
        if len(self._ids) > MAX_RECENT_IDS:
            del self._ids[next(iter(self._ids))]
        return True

    def remove(self, session: str, message: str) -> bool:
        """Remove an id. Return False if it was not known."""
        return (session, message) in self._ids and self._ids.pop((session, message)) is None


class Services:
    """The processes, MCP servers and skill catalogs that all sessions share."""

    def __init__(
        self, settings: Settings, paths: HomePaths, owner: ProcessOwner, notice: Callable[[str], None], change: Change
    ) -> None:
        """Create the services. `change` sends a command to a session.

        Raises:
            SettingsError: The settings of an MCP server are invalid.
        """
        self.settings = settings
        self.paths = paths
        self.owner = owner
        self.executed_commands = RecentIds()  # ids of executed slash commands, so that a repeated id runs once
        self.stopped_messages = RecentIds()  # ids of messages that were stopped, perhaps before they arrived
        self.deliveries: dict[str, Delivery] = {}
        self.pause_file = PauseFile(paths.home)
        self.skill_catalogs = SkillCatalogCache(skill_folders(paths.workspace, paths.home, settings.skills.folders))
        self.launcher = Launcher(owner, paths.home, settings.sandbox)
        self.shell_states = ShellStates()
        self.background = BackgroundProcesses(self.launcher, self.shell_states, DetachedProcesses(paths.detached_file))
        self.python = PythonTool(self.launcher)
        self.work = BackgroundWork(self.background, change)
        self.servers: Servers | None = None
        self.sources: list[ToolSource] = []
        self._notice = notice
        self._has_servers = anyio.Event()
        self._settings_changed = anyio.Event()
        self._set_servers(read_mcp_servers(settings))
        self.stop_words = WordList(settings.delivery.stop_words)
        self.status_words = WordList(settings.delivery.status_words)
        self._transcribers: list[Transcriber] = []
        self._retired_transcribers: list[Transcriber] = []
        self._voice_inboxes: list[TranscribingVoiceInbox] = []
        self._schedule_stores: list[SqliteScheduleStore] = []

    def apply_settings(self, settings: Settings, servers: "Mapping[str, ServerSettings]") -> None:
        """Apply new settings. Services whose settings are unchanged are not affected. Returns immediately."""
        before, self.settings = self.settings, settings
        self.stop_words.replace(settings.delivery.stop_words)
        self.status_words.replace(settings.delivery.status_words)
        if settings.voice != before.voice:
            self._apply_voice_settings()
        self.skill_catalogs.set_folders(skill_folders(self.paths.workspace, self.paths.home, settings.skills.folders))
        self._set_servers(servers)
        changed, self._settings_changed = self._settings_changed, anyio.Event()
        changed.set()

    def is_stop_word(self, text: str, surface: str) -> bool:
        """Return whether `text`, typed or spoken on `surface`, is a stop word. Always False for program surfaces."""
        is_enabled = self.settings.surfaces.get(surface, {}).get("stop_words", True)
        return surface not in PROGRAM_SURFACES and is_enabled and self.stop_words.matches(text)

    def is_status_question(self, text: str, surface: str) -> bool:
        """Return whether `text` asks how far a running turn is. Always False for program surfaces."""
        return surface not in PROGRAM_SURFACES and self.status_words.matches(text)

    async def wait_for_new_settings(self) -> None:
        """Wait until new settings are applied."""
        await self._settings_changed.wait()

    async def run(self) -> None:
        """Run the services that depend on the settings until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run_servers)
            while True:
                await self.wait_for_new_settings()
                tasks.start_soon(self._close_retired_transcribers)

    async def _run_servers(self) -> None:
        """Run the MCP servers. Waits until the settings contain at least one server."""
        await self._has_servers.wait()
        assert self.servers is not None
        await self.servers.run()

    def _apply_voice_settings(self) -> None:
        """Use the new voice settings for the next recording. Transcriptions in progress keep their transcriber."""
        self._retired_transcribers.extend(self._transcribers)
        self._transcribers.clear()
        for inbox in self._voice_inboxes:
            inbox.reconfigure(self.transcriber(), self.settings.voice)

    async def _close_retired_transcribers(self) -> None:
        """Close the replaced transcribers once the transcriptions in progress have finished."""
        retired = list(self._retired_transcribers)
        for inbox in self._voice_inboxes if retired else ():
            await inbox.wait_until_idle()
        for transcriber in retired:
            await transcriber.close()
            if transcriber in self._retired_transcribers:
                self._retired_transcribers.remove(transcriber)

    def _set_servers(self, servers: "Mapping[str, ServerSettings]") -> None:
        """Set the MCP servers. The MCP code is not imported before the first server is set."""
        if self.servers is not None:
            self.servers.apply_settings(servers)
        elif servers:
            from hark.mcp.server_context import ServerPaths as McpPaths
            from hark.mcp.servers import Servers
            from hark.processes.piped_process import create_spawner

            paths = McpPaths.in_home(self.paths.home, self.paths.workspace)
            self.servers = Servers(servers, paths, create_spawner(self.owner), self._notice)
            self.sources.append(self.servers)
            self._has_servers.set()

    async def close(self) -> None:
        """Stop all processes concurrently, within a second."""
        await self.work.close()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.background.close)
            tasks.start_soon(self.python.close)
            for inbox in self._voice_inboxes:
                tasks.start_soon(inbox.close)
            for service in (*self._transcribers, *self._retired_transcribers, *self._schedule_stores):
                tasks.start_soon(service.close)

    def transcriber(self) -> "Transcriber | None":
        """Return the shared transcriber, or None if voice is off. Nothing is started yet."""
        from hark.app.voice import make_transcriber
        from hark.processes.piped_process import create_spawner

        if not self._transcribers and (made := make_transcriber(self.settings.voice, create_spawner(self.owner))):
            self._transcribers.append(made)
        return self._transcribers[0] if self._transcribers else None

    def voice_inbox(self) -> "TranscribingVoiceInbox":
        """Return the shared inbox for voice messages."""
        from hark.voice.inbox import TranscribingVoiceInbox
        from hark.voice.pending_recordings import PendingRecordings

        if not self._voice_inboxes:
            recordings = PendingRecordings(self.paths.home / "voice")
            self._voice_inboxes.append(TranscribingVoiceInbox(self.transcriber(), recordings, self.settings.voice))
        return self._voice_inboxes[0]

    def speaker(self) -> "Speaker":
        """Return a speaker that converts text to speech."""
        from hark.app.voice import make_speaker
        from hark.processes.piped_process import create_spawner

        return make_speaker(self.settings.voice, create_spawner(self.owner))

    def speech_preferences(self) -> "SpeechPreferences":
        """Return each session's choice of whether its replies are spoken."""
        from hark.app.voice import SpeechPreference, SpeechPreferences

        return SpeechPreferences(
            self.paths.home / "spoken.json",
            SpeechPreference.AUTO if self.settings.voice.speak else SpeechPreference.OFF,
        )

    def narrator(self) -> "AgentNarrator":
        """Return a narrator that converts replies to voice messages."""
        from hark.app.voice import AgentNarrator
        from hark.processes.piped_process import create_spawner

        return AgentNarrator(self.speaker(), self.speech_preferences(), create_spawner(self.owner))

    def schedule_store(self) -> "SqliteScheduleStore":
        """Return the shared schedule store for this home."""
        from hark.store.schedule_store import SqliteScheduleStore

        if not self._schedule_stores:
            self._schedule_stores.append(SqliteScheduleStore(self.paths.home / "schedules.db"))
        return self._schedule_stores[0]

    async def reset_session(self, session: str, keep: Collection[str]) -> None:
        """End a session's children, processes and shell state. Background processes named in `keep` continue."""
        self.shell_states.forget(session)
        self.deliveries.pop(session, None)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.work.end_all, session, keep)
            tasks.start_soon(self.python.end_session, session)

    def skills_text(self) -> str:
        """Return the skills section of the system prompt, or "" if there are no skills."""
        lines = self.skill_catalogs.summary_lines()
        return (
            "\n".join(["Skills (view a skill with the skills tool before you do such work):", *lines, ""])
            if lines
            else ""
        )


def read_mcp_servers(settings: Settings) -> "dict[str, ServerSettings]":
    """Return the configured MCP servers by name.

    Raises:
        SettingsError: The settings of a server are invalid.
    """
    if not settings.mcp:
        return {}
    from hark.mcp.settings import ServerSettingsError, read_servers

    try:
        return read_servers(settings.mcp)
    except ServerSettingsError as error:
        raise SettingsError(str(error)) from error
