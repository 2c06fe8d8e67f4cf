"""Known bugs that are planted in the engine. The simulation must detect each of them."""

from tests.simulation.mutants import announcements, background, calls, ownership, queue, stops, writes
from tests.simulation.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *stops.MUTANTS,
    *queue.MUTANTS,
    *calls.MUTANTS,
    *writes.MUTANTS,
    *announcements.MUTANTS,
    *ownership.MUTANTS,
    *background.MUTANTS,
)
