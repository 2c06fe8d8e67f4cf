"""Known bugs, put back in: the simulation must find each of them."""

from tests.simulation.mutants import announcements, calls, queue, stops, writes
from tests.simulation.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (*stops.MUTANTS, *queue.MUTANTS, *calls.MUTANTS, *writes.MUTANTS, *announcements.MUTANTS)
