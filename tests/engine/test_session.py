"""Sessions: messages, deliveries and stops, as people meet them."""

from hark.protocol.commands import Delivery
from hark.protocol.outcomes import Completed, Interrupted
from hark.protocol.provider import TextChunk
from hark.providers.scripted import Hang, ScriptedProvider
from tests.engine.bench import make_bench, running


async def test_a_message_starts_a_turn_and_the_reply_is_its_outcome() -> None:
    provider = ScriptedProvider([[TextChunk("hello "), TextChunk("you")]])
    async with running(make_bench(provider)) as person:
        receipt = await person.say("hi")
        outcome = await person.door.idle()
    assert receipt.state == "started"
    assert receipt.turn == "demo.t1"
    assert outcome == Completed("hello you")
    assert person.screen.text == "hello you"


async def test_a_message_that_interrupts_runs_as_the_next_turn() -> None:
    hang = Hang()
    provider = ScriptedProvider([[hang], [TextChunk("done")]])
    async with running(make_bench(provider)) as person:
        await person.say("long task")
        await hang.reached.wait()
        receipt = await person.say("no, this instead", Delivery.INTERRUPT)
        await person.screen.until(lambda: len(person.screen.outcomes) == 2)
    assert receipt.state == "interrupting"
    assert person.screen.outcomes == [Interrupted("new message"), Completed("done")]
    assert person.screen.states("m2") == ["interrupting", "started"]
