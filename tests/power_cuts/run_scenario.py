"""Runs one scenario. The recorder starts this program under strace."""

import asyncio
import sys
from pathlib import Path

from tests.power_cuts.scenarios.all_scenarios import all_scenarios
from tests.power_cuts.scenarios.scenario import Marks

if __name__ == "__main__":
    name, length, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    scenario = all_scenarios(is_short=length == "short")[name]
    asyncio.run(scenario.run(folder / "root", Marks(folder / "marks")))
