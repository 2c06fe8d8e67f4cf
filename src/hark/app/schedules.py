"""Runs the schedules of the home on an agent."""

from hark.app.agent import Agent
from hark.app.slash.meaning import is_command
from hark.schedules.runner import ScheduleRunner, ScheduleServices

SURFACE = "schedule"


def schedule_services(agent: Agent) -> ScheduleServices:
    """Return what the runner of schedules needs of an agent."""
    bench = agent.bench
    return ScheduleServices(
        agent.parts.schedule_book(),
        bench.store,
        bench.clock,
        agent.settings.schedules,
        session=lambda name: agent.session(name, SURFACE),
        notice=lambda name, text: agent.session(name, SURFACE).notice("schedule", text),
        is_command=is_command,
        lapses=lambda: bench.tenure.lapses,
    )


async def run_schedules(agent: Agent) -> None:
    """Run the schedules of the agent's home, until cancelled."""
    await ScheduleRunner(schedule_services(agent)).run()
