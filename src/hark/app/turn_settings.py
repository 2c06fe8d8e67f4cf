"""The terms that the settings give to turns: rules, tools and the system prompt."""

from collections.abc import Sequence

from hark.app.builtin_tools import web_tools
from hark.app.memory_prompt import Remembered
from hark.app.services import Services
from hark.app.settings.types import Settings
from hark.app.system_prompt import SystemPrompt
from hark.engine.services import Terms
from hark.protocol.rules import Rules
from hark.protocol.tool import Tool
from hark.tools.toolbox import Toolbox


class TurnSettingsMaker:
    """Makes terms, at the start and at each reload. Tools that remember something are the same in all of them."""

    def __init__(self, parts: Services, own: Sequence[Tool], given: Sequence[Tool], *, can_ask: bool) -> None:
        """`own` are the agent's tools, `given` those that a program brings."""
        self._parts = parts
        self._own = own
        self._given = given
        self._can_ask = can_ask

    def make(self, settings: Settings) -> Terms:
        """Return the terms of these settings.

        Raises:
            ValueError: Two tools have the same name.
        """
        delivery = settings.delivery
        alone = settings.schedules.question_seconds
        stop, steer = delivery.after_stop, delivery.steer_before
        rules = Rules(stop, settings.limits, settings.approvals, self._can_ask, steer, alone)
        tools = [*self._own, *web_tools(self._parts, settings.web), *self._given]
        return Terms(rules, Toolbox(tools, self._parts.sources), self._prompt(settings))

    def _prompt(self, settings: Settings) -> SystemPrompt:
        places = self._parts.places
        notes = Remembered(places.home, places.workspace, settings.memory.prompt_characters)
        return SystemPrompt(places.workspace, (self._parts.skills_text, notes))
