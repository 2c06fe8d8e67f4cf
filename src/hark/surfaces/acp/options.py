"""What a person can choose in the editor: the mode, the model, slash commands."""

from collections.abc import Sequence
from typing import Literal

from acp.helpers import update_available_commands, update_current_mode
from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionInfoUpdate,
    SessionMode,
    SessionModeState,
    UnstructuredCommandInput,
)

from hark.protocol.agent import CommandLine
from hark.protocol.rules import ApprovalMode
from hark.protocol.session import SessionStatus
from hark.surfaces.acp.update_queue import Update

MODE = "mode"
MODEL = "model"
_MODES = {
    ApprovalMode.ASK: ("Ask", "Asks before anything that changes something"),
    ApprovalMode.AUTO: ("Auto", "Asks only for what is dangerous or leaves the workspace"),
    ApprovalMode.ALL: ("All", "Never asks"),
}


def modes(standing: SessionStatus) -> SessionModeState:
    """Return the modes, and the one in force."""
    return SessionModeState(
        current_mode_id=standing.mode,
        available_modes=[SessionMode(id=mode, name=name, description=words) for mode, (name, words) in _MODES.items()],
    )


def config_options(standing: SessionStatus) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
    """Return the same choices as options, for editors that show those, and the routes."""
    mode_values = [
        SessionConfigSelectOption(value=mode, name=name, description=words) for mode, (name, words) in _MODES.items()
    ]
    routes = [SessionConfigSelectOption(value=route, name=route) for route in standing.routes]
    return [
        _select(MODE, "Approvals", standing.mode, mode_values),
        _select(MODEL, "Model", standing.route, routes),
    ]


def commands(lines: Sequence[CommandLine]) -> AvailableCommandsUpdate:
    """Return the slash commands."""
    return update_available_commands(
        AvailableCommand(
            name=line.name,
            description=line.help,
            input=AvailableCommandInput(UnstructuredCommandInput(hint=line.takes)) if line.takes else None,
        )
        for line in lines
    )


def changes(before: SessionStatus, now: SessionStatus) -> list[Update]:
    """Return what to tell of a session that stands otherwise than before."""
    updates: list[Update] = []
    if now.mode is not before.mode:
        updates.append(update_current_mode(now.mode))
    if (now.mode, now.route) != (before.mode, before.route):
        options = config_options(now)
        updates.append(ConfigOptionUpdate(session_update="config_option_update", config_options=options))
    if now.title != before.title:
        updates.append(SessionInfoUpdate(session_update="session_info_update", title=now.title))
    return updates


def _select(
    kind: Literal["mode", "model"], title: str, value: str, values: list[SessionConfigSelectOption]
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect(
        type="select", id=kind, name=title, category=kind, current_value=value, options=values
    )
