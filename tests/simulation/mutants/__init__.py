"""Known bugs, put back in: the simulation must find each of them."""

from tests.simulation.mutants import calls, queue, stops, telling, writes
from tests.simulation.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (*stops.MUTANTS, *queue.MUTANTS, *calls.MUTANTS, *writes.MUTANTS, *telling.MUTANTS)
