"""What belongs to the app beside the workbench: nothing that happens to a turn or a session touches it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from hark.app.settings import SettingsError
from hark.app.settings.types import Settings
from hark.app.slash.stop_words import StopWords
from hark.processes.background import Background
from hark.processes.cookies import Detached, Owner
from hark.processes.shell import ShellStates
from hark.processes.start import Launcher
from hark.protocol.commands import Delivery
from hark.tools.python import PythonTool
from hark.tools.skills.catalog import SkillCatalogs, skill_places
from hark.tools.toolbox import Source

if TYPE_CHECKING:
    from hark.app.voice import AgentNarrator, SpeechPreferences
    from hark.mcp.servers import Servers
    from hark.mcp.settings import ServerSettings
    from hark.protocol.speech import Speaker, Transcriber
    from hark.store.schedule_store import SqliteScheduleBook
    from hark.voice.inbox import VoiceIngress


KEPT_IDS = 10_000
PROGRAMS = ("", "python", "oneshot", "schedule", "v1")  # what comes from these was not typed by a person


@dataclass(frozen=True, slots=True)
class HomePaths:
    """Where Hark keeps its files, and where it works."""

    home: Path
    workspace: Path

    @property
    def detached(self) -> Path:
        """The cookies of processes that a person let go."""
        return self.home / "detached"


class RecentIds:
    """Message ids of all sessions, the newest of them: the oldest are forgotten."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], None] = {}

    def note(self, session: str, message: str) -> bool:
        """Note an id; False when it is known."""
        if (session, message) in self._ids:
            return False
        self._ids[session, message] = None
        if len(self._ids) > KEPT_IDS:
            del self._ids[next(iter(self._ids))]
        return True

    def forget(self, session: str, message: str) -> bool:
        """Forget an id; False when it is not known."""
        return (session, message) in self._ids and self._ids.pop((session, message)) is None


class Services:
    """The processes, servers and shelves that all sessions share."""

    def __init__(self, settings: Settings, places: HomePaths, owner: Owner, notice: Callable[[str], None]) -> None:
        """Raises SettingsError when a server's settings are wrong."""
        self.settings = settings
        self.places = places
        self.owner = owner
        self.taken = RecentIds()  # commands that were carried out: the same id is taken once, as with any message
        self.stopped = RecentIds()  # messages that were stopped, perhaps before they came
        self.deliveries: dict[str, Delivery] = {}
        self.shelves = SkillCatalogs(skill_places(places.workspace, places.home, settings.skills.folders))
        self.launcher = Launcher(owner, places.home, settings.sandbox)
        self.states = ShellStates()
        self.background = Background(self.launcher, self.states, Detached(places.detached))
        self.python = PythonTool(self.launcher)
        self.servers: Servers | None = None
        self.sources: list[Source] = []
        self._notice = notice
        self._has_servers = anyio.Event()
        self._changed = anyio.Event()
        self._have_servers(servers_of(settings))
        self.stop_words = StopWords(settings.delivery.stop_words)
        self._transcribers: list[Transcriber] = []
        self._retired: list[Transcriber] = []
        self._ingresses: list[VoiceIngress] = []
        self._books: list[SqliteScheduleBook] = []

    def follow(self, settings: Settings, servers: "Mapping[str, ServerSettings]") -> None:
        """Take other settings: what has not changed is not touched. Waits for nothing."""
        before, self.settings = self.settings, settings
        self.stop_words.change(settings.delivery.stop_words)
        if settings.voice != before.voice:
            self._change_voice()
        self.shelves.change(skill_places(self.places.workspace, self.places.home, settings.skills.folders))
        self._have_servers(servers)
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def is_stop_word(self, text: str, surface: str) -> bool:
        """Return whether a text stops when a person types or says it on a surface; programs have no stop words."""
        is_on = self.settings.surfaces.get(surface, {}).get("stop_words", True)
        return surface not in PROGRAMS and is_on and self.stop_words.fits(text)

    async def changed(self) -> None:
        """Return when the settings are others than at the call."""
        await self._changed.wait()

    async def run(self) -> None:
        """Own what comes and goes with the settings, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run_servers)
            while True:
                await self.changed()
                tasks.start_soon(self._end_retired)

    async def _run_servers(self) -> None:
        """Own the MCP servers, from when the settings have any."""
        await self._has_servers.wait()
        assert self.servers is not None
        await self.servers.run()

    def _change_voice(self) -> None:
        """Have the next recording heard as the settings want it; what is being heard ends with whom it began."""
        self._retired.extend(self._transcribers)
        self._transcribers.clear()
        for ingress in self._ingresses:
            ingress.change(self.transcriber(), self.settings.voice)

    async def _end_retired(self) -> None:
        """End who hears no more, once all that was being heard is."""
        retired = list(self._retired)
        for ingress in self._ingresses if retired else ():
            await ingress.quiet()
        for transcriber in retired:
            await transcriber.close()
            if transcriber in self._retired:
                self._retired.remove(transcriber)

    def _have_servers(self, servers: "Mapping[str, ServerSettings]") -> None:
        """Have these servers; as long as there was never one, nothing of it is imported."""
        if self.servers is not None:
            self.servers.change(servers)
        elif servers:
            from hark.mcp.server_context import ServerPaths as McpPlaces
            from hark.mcp.servers import Servers
            from hark.processes.piped import spawner

            places = McpPlaces.in_home(self.places.home, self.places.workspace)
            self.servers = Servers(servers, places, spawner(self.owner), self._notice)
            self.sources.append(self.servers)
            self._has_servers.set()

    async def close(self) -> None:
        """End all processes, side by side, within a second."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.background.close)
            tasks.start_soon(self.python.close)
            for ingress in self._ingresses:
                tasks.start_soon(ingress.close)
            for part in (*self._transcribers, *self._retired, *self._books):
                tasks.start_soon(part.close)

    def transcriber(self) -> "Transcriber | None":
        """Return what turns speech into words, the same for all; None when voice is off. It starts nothing yet."""
        from hark.app.voice import make_transcriber
        from hark.processes.piped import spawner

        if not self._transcribers and (made := make_transcriber(self.settings.voice, spawner(self.owner))):
            self._transcribers.append(made)
        return self._transcribers[0] if self._transcribers else None

    def ingress(self) -> "VoiceIngress":
        """Return the way in for voice messages, the same for all."""
        from hark.voice.inbox import VoiceIngress
        from hark.voice.pending_recordings import PendingRecordings

        if not self._ingresses:
            shelf = PendingRecordings(self.places.home / "voice")
            self._ingresses.append(VoiceIngress(self.transcriber(), shelf, self.settings.voice))
        return self._ingresses[0]

    def speaker(self) -> "Speaker":
        """Return what speaks words aloud."""
        from hark.app.voice import make_speaker
        from hark.processes.piped import spawner

        return make_speaker(self.settings.voice, spawner(self.owner))

    def wishes(self) -> "SpeechPreferences":
        """Return who wants to hear replies."""
        from hark.app.voice import SpeechPreference, SpeechPreferences

        return SpeechPreferences(
            self.places.home / "spoken.json",
            SpeechPreference.AUTO if self.settings.voice.speak else SpeechPreference.OFF,
        )

    def narrator(self) -> "AgentNarrator":
        """Return what makes voice messages of replies."""
        from hark.app.voice import AgentNarrator
        from hark.processes.piped import spawner

        return AgentNarrator(self.speaker(), self.wishes(), spawner(self.owner))

    def schedule_book(self) -> "SqliteScheduleBook":
        """Return the schedules of this home, the same book for all."""
        from hark.store.schedule_store import SqliteScheduleBook

        if not self._books:
            self._books.append(SqliteScheduleBook(self.places.home / "schedules.db"))
        return self._books[0]

    async def forget(self, session: str) -> None:
        """End what a session has running: it starts afresh, or is over."""
        self.states.forget(session)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.background.end, session)
            tasks.start_soon(self.python.end, session)

    def skills_text(self) -> str:
        """Return what the system prompt says of the skills; "" when there are none."""
        lines = self.shelves.one_liners()
        return "\n".join(["Skills (view one with the skills tool before such work):", *lines, ""]) if lines else ""


def servers_of(settings: Settings) -> "dict[str, ServerSettings]":
    """Return the MCP servers that the settings name.

    Raises:
        SettingsError: Something is wrong with one of them.
    """
    if not settings.mcp:
        return {}
    from hark.mcp.settings import ServerSettingsError, read_servers

    try:
        return read_servers(settings.mcp)
    except ServerSettingsError as error:
        raise SettingsError(str(error)) from error
