"""The work that is pending according to a session's inbox and journal."""

from collections.abc import Collection

from hark.engine.session.state import SessionState
from hark.protocol.commands import Say
from hark.protocol.records import Queued, Steered, TurnEnded, TurnStarted, Withdrawn, WorkStarted
from tests.simulation.observations import Observations


def current_state(observations: Observations) -> SessionState:
    """Return the fold of the session's journal."""
    state = SessionState()
    for one in observations.records:
        state.apply(one.record)
    return state


def find_runnable_work(observations: Observations, max_wake_ups: int, live_machines: Collection[str]) -> str:
    """Return a description of work that needs no user but has not started or ended, or ""."""
    state = current_state(observations)
    unread = [entry.seq for _, entry in observations.entries if entry.seq > state.cursor]
    if unread:
        return f"the inbox entries {unread} are unread"
    if state.turn is None and state.queue and not state.is_held:
        return f"{len(state.queue)} queued messages do not run"
    if state.turn is None and state.can_wake(max_wake_ups):
        return f"the reports {sorted(state.waking_reports)} start no turn"
    lost = [work for work, machine in find_running_work(observations).items() if machine not in live_machines]
    return f"no process runs the work {lost}" if lost and not state.are_wake_ups_held else ""


def find_running_work(observations: Observations) -> dict[str, str]:
    """Return the work that the journal shows as running, each with the machine that started it."""
    machines = {run.call: run.machine for run in observations.tools}
    machines |= {one.record.work: one.writer for one in observations.records if isinstance(one.record, WorkStarted)}
    return {work: machines[work] for work in current_state(observations).work}


def find_open_turn(observations: Observations) -> str:
    """Return the name of the open turn, or ""."""
    turn = ""
    for one in observations.records:
        if isinstance(one.record, TurnStarted):
            turn = one.record.turn
        elif isinstance(one.record, TurnEnded):
            turn = ""
    return turn


def find_pending_messages(observations: Observations) -> set[str]:
    """Return the ids of the messages that are in no turn and were not withdrawn."""
    pending = {entry.command.id for _, entry in observations.entries if isinstance(entry.command, Say)}
    for one in observations.records:
        match one.record:
            case TurnStarted(messages=messages) | Steered(messages=messages):
                pending.difference_update(message.id for message in messages)
            case Queued(message=message):
                pending.add(message.id)
            case Withdrawn(message=message):
                pending.discard(message)
            case _:
                pass
    return pending
