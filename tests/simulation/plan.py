"""The plan of a run, derived from its seed: machines, store, rules and faults."""

from dataclasses import dataclass
from random import Random

from msgspec import structs

from hark.protocol.rules import AfterStop, ApprovalMode, Approvals, Limits, Rules

MACHINES = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of one run. Each probability is per action."""

    seed: int
    machines: int
    is_sql: bool
    rules: Rules
    tempo: float
    users: int
    actions_per_user: int
    pause_seconds: float
    faults: tuple[str, ...]
    detects_death: bool
    has_readers: bool
    quiet_delivery: str
    failure_rate: float
    wake_loss_rate: float
    idle_seconds: float
    has_visitor: bool
    has_reflection: bool
    has_lapse: bool
    has_background_work: bool
    has_last_stop: bool


def make_plan(seed: int) -> Plan:
    random, extras = Random(seed), Random(f"{seed} extras")
    machines = 2 if random.random() < 0.35 else 1
    faults = _choose_faults(random, machines)
    background = Random(f"{seed} background")
    has_background_work = background.random() < 0.6
    rules = Rules(
        after_stop=random.choice([AfterStop.HOLD, AfterStop.HOLD, AfterStop.RUN, AfterStop.EDIT]),
        limits=Limits(
            steps=random.choice([3, 5, 8]),
            seconds=random.choice([None, None, None, 2.0]),
            wake_ups=background.choice([1, 2, 10]),
        ),
        approvals=Approvals(mode=random.choice([ApprovalMode.AUTO, ApprovalMode.ASK])),
        can_ask=random.random() < 0.9,
    )
    if has_background_work and background.random() < 0.8:
        rules = structs.replace(rules, approvals=Approvals(mode=ApprovalMode.ALL))
    return Plan(
        seed=seed,
        machines=machines,
        is_sql=random.random() < 0.35,
        rules=rules,
        tempo=random.choice([0.2, 1.0, 1.0, 3.0]),
        users=random.choice([1, 1, 2]),
        actions_per_user=random.randint(3, 8),
        pause_seconds=random.choice([0.02, 0.15, 0.4]),
        faults=faults,
        detects_death=random.random() < 0.6,
        has_readers=random.random() < 0.7,
        quiet_delivery=random.choice(["interrupt", "queue", "steer"]),
        failure_rate=0.03 if random.random() < 0.08 else 0.0,
        wake_loss_rate=random.choice([0.0, 0.3, 1.0]),
        idle_seconds=random.choice([0.0, 0.0, 1.5, 4.0]) + (2.0 if has_background_work else 0.0),
        has_visitor=extras.random() < 0.3,
        has_reflection=bool(faults) and extras.random() < 0.3,
        has_lapse=machines > 1 and extras.random() < 0.4,
        has_background_work=has_background_work,
        has_last_stop=has_background_work and background.random() < 0.3,
    )


def _choose_faults(random: Random, machines: int) -> tuple[str, ...]:
    if random.random() < 0.45:
        return ()
    kinds = ["kill", "kill", "close"]
    if machines > 1:
        kinds.append("pause")
    return tuple(random.choice(kinds) for _ in range(random.randint(1, 2)))
