"""Runs the schedules in an agent's home directory."""

from hark.app.agent import Agent
from hark.app.slash.meaning import is_command
from hark.schedules.runner import RunnerServices, ScheduleRunner

SURFACE = "schedule"


def schedule_services(agent: Agent) -> RunnerServices:
    """Return the services that the schedule runner needs from an agent."""
    engine = agent.engine
    return RunnerServices(
        agent.services.schedule_store(),
        engine.store,
        engine.clock,
        agent.settings.schedules,
        session=lambda name: agent.session(name, SURFACE),
        notice=lambda name, text: agent.session(name, SURFACE).publish_notice("schedule", text),
        is_command=is_command,
        lapses=lambda: engine.lease_renewal.lapses,
    )


async def run_schedules(agent: Agent) -> None:
    """Run the schedules in the agent's home directory until cancelled."""
    await ScheduleRunner(schedule_services(agent)).run()
