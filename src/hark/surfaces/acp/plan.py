"""The list of things to do, as an editor's plan."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp.schema import AgentPlanUpdate, PlanEntry, PlanEntryStatus

_STATUSES: dict[str, PlanEntryStatus] = {"pending": "pending", "doing": "in_progress", "done": "completed"}


def as_plan(items: Sequence[Mapping[str, Any]]) -> AgentPlanUpdate:
    """Return the whole list; it takes the place of the one before."""
    entries = [
        PlanEntry(
            content=str(item.get("text", "")),
            priority="medium",
            status=_STATUSES.get(str(item.get("status")), "pending"),
        )
        for item in items
    ]
    return AgentPlanUpdate(session_update="plan", entries=entries)
