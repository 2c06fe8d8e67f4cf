"""All scenarios by name, in full length and short."""

from tests.power_cuts.scenarios.file_tools import FileTools
from tests.power_cuts.scenarios.first_start import FirstStart
from tests.power_cuts.scenarios.home_files import HomeFiles
from tests.power_cuts.scenarios.scenario import Scenario
from tests.power_cuts.scenarios.uploads import Uploads


def all_scenarios(*, is_short: bool = False) -> dict[str, Scenario]:
    """Return the scenarios. The short ones take a few seconds."""
    scenarios: tuple[Scenario, ...]
    if is_short:
        scenarios = FileTools(rounds=1), Uploads(count=3), HomeFiles(count=2, command_count=0), FirstStart()
    else:
        scenarios = FileTools(), Uploads(), HomeFiles(), FirstStart()
    return {scenario.name: scenario for scenario in scenarios}
