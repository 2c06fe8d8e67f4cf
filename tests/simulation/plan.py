"""What a seed decides before the run: how many machines, which store, which rules, and how much goes wrong."""

from dataclasses import dataclass
from random import Random

from hark.protocol.rules import AfterStop, ApprovalMode, Approvals, Limits, Rules

MACHINES = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """One run. The chances are per act."""

    seed: int
    machines: int
    is_sql: bool
    rules: Rules
    tempo: float
    people: int
    acts: int
    pace: float
    faults: tuple[str, ...]
    tells_death: bool
    watches: bool
    quiet_delivery: str
    failing: float
    loses_wakes: float
    lull: float


def plan_of(seed: int) -> Plan:
    random = Random(seed)
    machines = 2 if random.random() < 0.35 else 1
    faults = _faults(random, machines)
    rules = Rules(
        after_stop=random.choice([AfterStop.HOLD, AfterStop.HOLD, AfterStop.RUN, AfterStop.EDIT]),
        limits=Limits(steps=random.choice([3, 5, 8]), seconds=random.choice([None, None, None, 2.0])),
        approvals=Approvals(mode=random.choice([ApprovalMode.AUTO, ApprovalMode.ASK])),
        can_ask=random.random() < 0.9,
    )
    return Plan(
        seed=seed,
        machines=machines,
        is_sql=random.random() < 0.35,
        rules=rules,
        tempo=random.choice([0.2, 1.0, 1.0, 3.0]),
        people=random.choice([1, 1, 2]),
        acts=random.randint(3, 8),
        pace=random.choice([0.02, 0.15, 0.4]),
        faults=faults,
        tells_death=random.random() < 0.6,
        watches=random.random() < 0.7,
        quiet_delivery=random.choice(["interrupt", "queue", "steer"]),
        failing=0.03 if random.random() < 0.08 else 0.0,
        loses_wakes=random.choice([0.0, 0.3, 1.0]),
        lull=random.choice([0.0, 0.0, 1.5, 4.0]),
    )


def _faults(random: Random, machines: int) -> tuple[str, ...]:
    if random.random() < 0.45:
        return ()
    kinds = ["kill", "kill", "close"]
    if machines > 1:
        kinds.append("pause")
    return tuple(random.choice(kinds) for _ in range(random.randint(1, 2)))
