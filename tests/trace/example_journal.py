"""The journal of an example session: a turn with many kinds of events, and its child session."""

from hark.protocol.commands import Delivery
from hark.protocol.messages import AssistantMessage, Call, CallResult, Effect, UserMessage
from hark.protocol.outcomes import Completed, Interrupted, Span, Timings, Usage
from hark.protocol.records import AnyRecord, CallEnded, CallStarted, Queued, Replied, Steered, TurnEnded, TurnStarted

START_TIME = 1_790_000_000.0
SCRIPT = "<script>alert(1)</script>"
CHILD = "demo.c-c2"


def small_turn(number: int, total: float = 1000.0, at: float = START_TIME, prompt: str = "hello") -> list[AnyRecord]:
    """Return the journal records of a small turn with one reply."""
    name = f"demo.t{number}"
    spans = (Span("model", "main", 1.0, total - 1.0),)
    reply = AssistantMessage("Hello to you.")
    return [
        TurnStarted(turn=name, messages=(UserMessage(f"m{number}", prompt),), at=at),
        Replied(turn=name, step=1, message=reply, route="main", usage=Usage(10, 4), at=at + total / 1000),
        TurnEnded(
            turn=name,
            outcome=Completed("Hello to you."),
            timings=Timings(total, total - 2, 0, first_chunk=total / 2, spans=spans),
            usage=Usage(10, 4),
            cost=0.001,
            at=at + total / 1000,
        ),
    ]


def example_journal() -> list[AnyRecord]:
    """Return a journal with two turns. Turn 2 fails over, asks, delegates, is steered, and is then interrupted."""
    at = START_TIME + 60
    name = "demo.t2"
    calls = (
        Call("c1", "shell", '{"command": "python -m pytest -q tests/app"}'),
        Call("c2", "delegate", '{"goal": "look for other callers of parse()"}'),
        Call("c3", "write", '{"path": "../outside.txt", "text": "x"}'),
    )
    return [
        *small_turn(1),
        TurnStarted(turn=name, messages=(UserMessage("m2", f"fix the failing test {SCRIPT}"),), at=at),
        Replied(
            turn=name,
            step=1,
            message=AssistantMessage(f"I'll look at the tests first. {SCRIPT}", calls),
            route="spare",
            usage=Usage(3_210, 140, 2_048),
            at=at + 2.9,
        ),
        CallStarted(turn=name, call="c1", at=at + 3.0),
        CallStarted(turn=name, call="c2", at=at + 3.0),
        Queued(
            message=UserMessage("m3", "only the tests of app, please"), delivery=Delivery.STEER, turn=name, at=at + 4
        ),
        CallEnded(
            turn=name, result=CallResult("c1", "shell", f"2 failed {SCRIPT}", Effect.COMPLETED, True), at=at + 6.2
        ),
        CallEnded(
            turn=name, result=CallResult("c2", "delegate", "There are 3 callers.", Effect.COMPLETED), at=at + 7.4
        ),
        CallEnded(
            turn=name,
            result=CallResult("c3", "write", "The user declined this call.", Effect.NOT_STARTED, True),
            at=at + 5,
        ),
        Steered(turn=name, step=2, messages=(UserMessage("m3", "only the tests of app, please"),), at=at + 7.45),
        Replied(
            turn=name,
            step=2,
            message=AssistantMessage("", (Call("c4", "shell", '{"command": "sleep 120"}'),)),
            route="spare",
            usage=Usage(4_000, 30, 3_900),
            at=at + 8.5,
        ),
        CallStarted(turn=name, call="c4", at=at + 8.5),
        Queued(message=UserMessage("m4", "stop, do it in C"), delivery=Delivery.INTERRUPT, turn=name, at=at + 10),
        CallEnded(turn=name, result=CallResult("c4", "shell", "[cancelled]", Effect.CANCELLED, True), at=at + 10.014),
        TurnEnded(
            turn=name,
            outcome=Interrupted("new message"),
            timings=Timings(10_014.2, 3_700, 12_000, 14.2, 2_100.0, 10_000.0, _SPANS),
            usage=Usage(7_210, 170, 5_948),
            cost=0.0312,
            at=at + 10.014,
        ),
        TurnStarted(turn="demo.t3", messages=(UserMessage("m4", "stop, do it in C"),), at=at + 10.015),
    ]


def child_journal() -> list[AnyRecord]:
    """Return the journal of the child session that call c2 started."""
    at = START_TIME + 63.1
    name = f"{CHILD}.t1"
    spans = (Span("model", "main", 1, 1_900), Span("tool", "grep", 1_950, 2_300), Span("model", "main", 2_310, 4_200))
    return [
        TurnStarted(turn=name, messages=(UserMessage("c2", "look for other callers of parse()"),), at=at),
        Replied(
            turn=name, step=1, message=AssistantMessage("", (Call("g1", "grep", '{"pattern": "parse("}'),)), at=at + 1.9
        ),
        CallStarted(turn=name, call="g1", at=at + 1.95),
        CallEnded(turn=name, result=CallResult("g1", "grep", "3 hits", Effect.COMPLETED), at=at + 2.3),
        Replied(turn=name, step=2, message=AssistantMessage("There are 3 callers."), at=at + 4.2),
        TurnEnded(
            turn=name,
            outcome=Completed("There are 3 callers."),
            timings=Timings(4_210, 3_790, 350, first_chunk=600, spans=spans),
            at=at + 4.2,
        ),
    ]


_SPANS = (
    Span("model", "main", 2, 700),
    Span("pause", "retry", 701, 1_200),
    Span("model", "main", 1_201, 1_500),
    Span("model", "spare", 1_501, 2_900),
    Span("snapshot", "files", 2_905, 2_990),
    Span("question", "write", 2_991, 5_000),
    Span("tool", "shell", 3_000, 6_200),
    Span("tool", "delegate", 3_001, 7_400),
    Span("model", "spare", 7_450, 8_500),
    Span("tool", "shell", 8_502, 10_012.1, 12.1),
)
