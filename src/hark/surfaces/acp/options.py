"""The user's choices in the editor: mode, model and slash commands."""

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

from hark.protocol.agent import CommandInfo
from hark.protocol.rules import ApprovalMode
from hark.protocol.session import SessionStatus
from hark.surfaces.acp.update_queue import Update

MODE = "mode"
MODEL = "model"
_MODES = {
    ApprovalMode.ASK: ("Ask", "Asks before every action that changes something"),
    ApprovalMode.AUTO: ("Auto", "Asks only before actions that are dangerous or write outside the workspace"),
    ApprovalMode.ALL: ("All", "Never asks"),
}


def build_mode_state(status: SessionStatus) -> SessionModeState:
    """Return the available modes and the current one."""
    return SessionModeState(
        current_mode_id=status.mode,
        available_modes=[SessionMode(id=mode, name=name, description=text) for mode, (name, text) in _MODES.items()],
    )


def build_config_options(status: SessionStatus) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
    """Return the modes and the routes as config options, for editors that show options."""
    mode_values = [
        SessionConfigSelectOption(value=mode, name=name, description=description)
        for mode, (name, description) in _MODES.items()
    ]
    routes = [SessionConfigSelectOption(value=route, name=route) for route in status.routes]
    return [
        _build_select_option(MODE, "Approvals", status.mode, mode_values),
        _build_select_option(MODEL, "Model", status.route, routes),
    ]


def build_commands_update(commands: Sequence[CommandInfo]) -> AvailableCommandsUpdate:
    """Return the update that lists the slash commands."""
    return update_available_commands(
        AvailableCommand(
            name=line.name,
            description=line.help,
            input=AvailableCommandInput(UnstructuredCommandInput(hint=line.takes)) if line.takes else None,
        )
        for line in commands
    )


def build_status_updates(before: SessionStatus, now: SessionStatus) -> list[Update]:
    """Return the updates for the differences between two statuses of a session."""
    updates: list[Update] = []
    if now.mode is not before.mode:
        updates.append(update_current_mode(now.mode))
    if (now.mode, now.route) != (before.mode, before.route):
        options = build_config_options(now)
        updates.append(ConfigOptionUpdate(session_update="config_option_update", config_options=options))
    if now.title != before.title:
        updates.append(SessionInfoUpdate(session_update="session_info_update", title=now.title))
    return updates


def _build_select_option(
    kind: Literal["mode", "model"], title: str, value: str, values: list[SessionConfigSelectOption]
) -> SessionConfigOptionSelect:
    return SessionConfigOptionSelect(
        type="select", id=kind, name=title, category=kind, current_value=value, options=values
    )
