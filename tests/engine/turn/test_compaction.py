"""Making room: what is old becomes a summary, and a cut in the middle of it loses nothing."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hark.engine.turn.compaction import INSTRUCTIONS, is_full, split, summarise
from hark.engine.turn.reply import Reply
from hark.engine.turn.routes import Route
from hark.engine.turn.tokens import estimate
from hark.engine.turn.transcript import KEPT_WORDS
from hark.protocol.commands import Compact, Say
from hark.protocol.events import Notice, ReplyDelta, ReplyRestarted, RouteChanged
from hark.protocol.messages import (
    AssistantMessage,
    Attachment,
    Call,
    CallResult,
    Effect,
    Message,
    Note,
    Reasoning,
    UserMessage,
)
from hark.protocol.outcomes import Completed, Failed, Interrupted, Usage
from hark.protocol.provider import (
    BadKey,
    ContextTooLong,
    EndChunk,
    Overloaded,
    ProviderError,
    Request,
    TextChunk,
    UsageChunk,
)
from hark.providers.scripted import Fail, Hang, ScriptedProvider, Step
from hark.store.memory import MemoryStore, SharedMemory
from tests.engine.engine_fixture import Person, TestClock, asks_for, quick_tool, running
from tests.engine.route_chain import DOWN, LOST, chain, in_virtual_time, script

LONG = "word " * 1_000  # about 1,430 tokens
TOO_LONG = Fail(ContextTooLong("The model server answered 400: maximum context length is 8192 tokens"))
WINDOW = 5_000


def used(call: str, text: str = "seen") -> list[Message]:
    return [AssistantMessage("", (Call(call, "look"),)), CallResult(call, "look", text, Effect.COMPLETED)]


def told(messages: Sequence[Message]) -> list[str]:
    """What people said, in order."""
    return [message.text for message in messages if isinstance(message, UserMessage)]


def check_pairs(messages: Sequence[Message]) -> None:
    """Raise AssertionError unless every call is followed by its results at once, and every result has its call."""
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, CallResult):
            open_calls.remove(message.call)
            continue
        assert not open_calls
        if isinstance(message, AssistantMessage):
            open_calls = [call.id for call in message.calls]
    assert not open_calls


def asked_for_summary(provider: ScriptedProvider) -> list[bool]:
    lasts = [request.messages[-1] for request in provider.requests]
    return [isinstance(last, Note) and last.text.startswith(INSTRUCTIONS) for last in lasts]


# Where to cut.


def test_an_unknown_window_is_never_full_and_a_known_one_before_its_end() -> None:
    messages = [UserMessage("1", LONG)]
    tokens = estimate(messages)
    assert not is_full(tokens, None)
    assert not is_full(tokens, tokens * 2)
    assert is_full(tokens, int(tokens * 1.2))


def test_all_that_is_sent_counts() -> None:
    plain = estimate([UserMessage("1", ""), AssistantMessage("x")])
    file = Attachment("image/png", data="x")
    rich = [UserMessage("1", "", "", (file,)), AssistantMessage("x", (Call("c", "n", LONG),), (Reasoning(LONG),))]
    assert estimate(rich) > plain + 1_500 + 2_800


def test_a_call_is_never_torn_from_its_results_wherever_the_cut_falls() -> None:
    messages: list[Message] = [UserMessage("1", "go"), *used("a", LONG), *used("b", LONG), *used("c", LONG)]
    messages += [AssistantMessage("done"), UserMessage("2", "more"), *used("d", LONG)]
    cuts = {split(messages, room) for room in range(0, estimate(messages) + 10, 25)}
    assert len(cuts - {0}) >= 4
    for cut in cuts - {0}:
        check_pairs(messages[:cut])
        check_pairs(messages[cut:])


def test_with_no_room_the_last_exchange_alone_stays() -> None:
    messages: list[Message] = [UserMessage("1", "a"), AssistantMessage("b"), UserMessage("2", "c")]
    assert split(messages, 0) == 2
    assert split([*messages, *used("x")], 0) == 3


def test_there_is_nothing_to_compact_in_little_or_in_what_would_stay_anyway() -> None:
    user, reply = UserMessage("1", LONG), AssistantMessage("b")
    assert split([], 0) == 0
    assert split([user], 0) == 0
    assert split([user, reply], 0) == 0
    assert split([Note("a summary"), user, user, user, UserMessage("2", "now")], 0) == 0
    assert split([user, reply, UserMessage("2", "now")], 0, least=500) == 0
    assert split([user, AssistantMessage(LONG), UserMessage("2", "now")], 0, least=500) == 2


async def test_a_summary_that_is_too_long_to_ask_for_is_asked_for_with_less_of_each_text() -> None:
    sizes: list[int] = []

    async def ask(messages: Sequence[Message]) -> Reply:
        check_pairs(messages)
        sizes.append(estimate(messages))
        if sizes[-1] > 1_000:
            raise ContextTooLong("too long")
        reply = Reply()
        for chunk in (TextChunk(" notes "), EndChunk()):
            reply.add(chunk)
        return reply

    summary, _ = await summarise(ask, [UserMessage("1", LONG), *used("a", LONG), *used("b", LONG)])
    assert summary == "notes"
    assert len(sizes) == 3
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("chunks", [[EndChunk()], [TextChunk("I can't."), EndChunk("refusal")]], ids=["none", "no"])
async def test_an_empty_or_refused_summary_is_none(chunks: list[TextChunk | EndChunk]) -> None:
    async def ask(messages: Sequence[Message]) -> Reply:
        reply = Reply()
        for chunk in chunks:
            reply.add(chunk)
        return reply

    with pytest.raises(ProviderError) as caught:
        await summarise(ask, [UserMessage("1", "x")])
    assert caught.value.code == "no_summary"


# In a turn.


async def talk(person: Person, *texts: str) -> None:
    for text in texts:
        await person.say(text)
        assert isinstance(await person.door.idle(), Completed)


@in_virtual_time
async def test_old_messages_become_a_summary_before_the_context_is_full() -> None:
    provider = script([LONG], [LONG], ["the notes"], ["done"])
    async with running(chain(Route("main", provider, context_tokens=WINDOW))) as person:
        await talk(person, "one", "two " + LONG)
        await talk(person, "three")
        messages = list(person.transcript)
    assert asked_for_summary(provider) == [False, False, True, False]
    last = provider.requests[-1].messages
    assert estimate(last) < WINDOW * 0.8
    assert isinstance(last[0], Note)
    assert "the notes" in last[0].text
    assert told(last) == ["one", "two " + LONG, "three"]
    assert messages[-1] == AssistantMessage("done")
    notices = [event.text for event in person.screen.all(Notice) if event.code == "compaction"]
    assert len(notices) == 2
    assert "became a summary of 9 characters" in notices[-1]


@in_virtual_time
async def test_a_summary_is_asked_for_with_the_same_beginning_so_that_a_cache_serves_it() -> None:
    provider = script([LONG], [LONG], ["the notes"], ["done"])
    bench = chain(Route("main", provider, context_tokens=WINDOW), tools=[quick_tool()])
    async with running(bench) as person:
        await talk(person, "one", "two " + LONG, "three")
    before, asking = provider.requests[1], provider.requests[2]
    assert (asking.system, asking.tools) == (before.system, before.tools)
    assert list(asking.messages)[: len(before.messages)] == list(before.messages)


@in_virtual_time
async def test_the_summary_is_shown_to_nobody_as_a_reply() -> None:
    provider = script([LONG], [LONG], ["the notes"], ["done"])
    async with running(chain(Route("main", provider, context_tokens=WINDOW))) as person:
        await talk(person, "one", "two " + LONG, "three")
    assert "the notes" not in [event.text for event in person.screen.all(ReplyDelta)]


@in_virtual_time
async def test_a_context_that_can_not_be_made_shorter_is_not_summarised_at_every_step() -> None:
    provider = script(["a"], ["b"], *[[*asks_for("look")]] * 5, ["done"])
    bench = chain(Route("main", provider, context_tokens=1_000), tools=[quick_tool()])
    async with running(bench) as person:
        await talk(person, LONG, LONG, LONG)
    assert True not in asked_for_summary(provider)
    assert len(provider.requests) == 8


@in_virtual_time
async def test_a_summary_that_fails_before_the_context_is_full_is_told_and_the_turn_goes_on() -> None:
    provider = script([LONG], [LONG], [EndChunk()], [*asks_for("look")], ["done"])
    bench = chain(Route("main", provider, context_tokens=WINDOW), tools=[quick_tool()])
    async with running(bench) as person:
        await talk(person, "one", "two " + LONG, "three")
    assert asked_for_summary(provider) == [False, False, True, False, False]
    assert person.screen.outcomes[-1] == Completed("done")
    assert any("nothing was summarised" in event.text for event in person.screen.all(Notice))


@in_virtual_time
async def test_a_route_that_failed_is_asked_for_no_summary_until_it_answers() -> None:
    wrong = [Fail(BadKey("The key is wrong."))]
    provider = script([LONG], wrong, wrong, ["mended"], ["the notes"], ["done"])
    async with running(chain(Route("main", provider, context_tokens=WINDOW))) as person:
        for words in ("one", "two " + LONG, "three " + LONG, "four", "five"):
            await person.say(words)
            await person.door.idle()
    assert asked_for_summary(provider) == [False, False, False, False, True, False]
    assert person.screen.outcomes[-2:] == [Completed("mended"), Completed("done")]


@in_virtual_time
async def test_the_servers_own_too_long_makes_room_and_asks_again() -> None:
    provider = script(["a"], ["b"], [TOO_LONG], ["the notes"], ["done"])
    async with running(chain(Route("main", provider))) as person:
        await talk(person, "one", "two", "three")
    assert asked_for_summary(provider) == [False, False, False, True, False]
    assert told(provider.requests[-1].messages) == ["one", "two", "three"]
    assert "the notes" in provider.requests[-1].messages[0].text


@in_virtual_time
async def test_the_servers_own_too_long_counts_more_than_the_window_that_we_know_of() -> None:
    provider = script(["a"], ["b"], [TOO_LONG], ["the notes"], ["done"])
    async with running(chain(Route("main", provider, context_tokens=1_000_000))) as person:
        await talk(person, "one", "two", "three")
    assert person.screen.outcomes[-1] == Completed("done")


@in_virtual_time
async def test_too_long_in_the_middle_of_a_turn_keeps_calls_with_their_results() -> None:
    steps = [[*asks_for("look", "look")] for _ in range(3)]
    provider = script(*steps, [TOO_LONG], ["the notes"], ["done"])
    async with running(chain(Route("main", provider), tools=[quick_tool(text=LONG)])) as person:
        await talk(person, "one")
    for request in provider.requests:
        check_pairs(request.messages)
    assert told(provider.requests[-1].messages) == ["one"]
    assert estimate(provider.requests[-1].messages) < estimate(provider.requests[-3].messages)


@in_virtual_time
async def test_a_request_that_stays_too_long_fails_the_turn_with_the_servers_words() -> None:
    provider = script(["a"], ["b"], [TOO_LONG], ["the notes"], [TOO_LONG], ["never"])
    async with running(chain(Route("main", provider))) as person:
        await talk(person, "one", "two")
        await person.say("three")
        outcome = await person.door.idle()
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "context_too_long"
    assert "maximum context length is 8192" in outcome.error.message
    assert len(provider.requests) == 5


@in_virtual_time
async def test_too_long_with_nothing_to_compact_fails_with_the_servers_words() -> None:
    provider = script([TOO_LONG], ["never"])
    async with running(chain(Route("main", provider))) as person:
        await person.say(LONG)
        outcome = await person.door.idle()
    assert isinstance(outcome, Failed)
    assert "maximum context length is 8192" in outcome.error.message
    assert len(provider.requests) == 1


@in_virtual_time
async def test_even_a_history_that_is_too_long_to_be_summarised_whole_is_made_short() -> None:
    def answer(request: Request) -> list[Step]:
        is_long = estimate(request.messages) > 2_000
        return [TOO_LONG] if is_long else ["notes" if request.messages[-1] == Note(INSTRUCTIONS) else "done"]

    provider = script([LONG], [LONG], *[answer] * 4)
    async with running(chain(Route("main", provider))) as person:
        await talk(person, "one", "two", "three")
    assert person.screen.outcomes[-1] == Completed("done")
    assert asked_for_summary(provider) == [False, False, False, True, True, False]


@in_virtual_time
async def test_text_that_was_seen_before_too_long_was_said_is_taken_back() -> None:
    provider = script(["a"], ["b"], ["half", TOO_LONG], ["the notes"], ["whole"])
    async with running(chain(Route("main", provider))) as person:
        await talk(person, "one", "two", "three")
    assert len(person.screen.all(ReplyRestarted)) == 1


@in_virtual_time
async def test_the_last_words_of_the_person_stay_as_they_were_said() -> None:
    words = [f"message {number}" for number in range(8)]
    provider = script(*[["ok"]] * 7, [TOO_LONG], ["the notes"], ["done"])
    async with running(chain(Route("main", provider))) as person:
        await talk(person, *words)
    kept = told(provider.requests[-1].messages)
    assert KEPT_WORDS < len(kept) < len(words)
    assert kept == words[-len(kept) :]


@in_virtual_time
async def test_a_summary_is_asked_for_again_after_a_passing_failure_and_elsewhere_after_a_lasting_one() -> None:
    first = script(["a"], ["b"], [TOO_LONG], [LOST], [DOWN])
    second = script(["the notes"], ["done"])
    async with running(chain(Route("first", first), Route("second", second))) as person:
        await talk(person, "one", "two", "three")
    assert [event.route for event in person.screen.all(RouteChanged)] == ["second"]
    assert asked_for_summary(second) == [True, False]


@in_virtual_time
async def test_a_silent_summary_is_not_waited_for_for_ever() -> None:
    hang = Hang()
    provider = script(["a"], ["b"], [TOO_LONG], [hang], ["the notes"], ["done"])
    async with running(chain(Route("main", provider))) as person:
        await talk(person, "one", "two", "three")
    assert hang.closed.is_set()
    assert person.screen.outcomes[-1] == Completed("done")


@in_virtual_time
async def test_what_a_summary_costs_is_counted() -> None:
    paid = UsageChunk(Usage(1_000_000, 0))
    provider = script(["a"], ["b"], [TOO_LONG], ["the notes", paid], ["done", paid])
    async with running(chain(Route("main", provider, input_price=2.0, output_price=9.0))) as person:
        await talk(person, "one", "two", "three")
        end = person.door.state.last_end
    assert end is not None
    assert end.cost == pytest.approx(4.0)
    assert end.usage == Usage(2_000_000, 0)


# Cut, asked for, kept.


@in_virtual_time
async def test_a_cut_in_the_middle_of_a_summary_loses_neither_messages_nor_summary() -> None:
    hang = Hang()
    provider = script(["a"], ["b"], ["half of the no", hang], ["later"], ["the notes"])
    async with running(chain(Route("main", provider))) as person:
        await talk(person, "one", "two")
        before = list(person.transcript)
        assert await person.door.change(Compact("c1")) is None
        await hang.reached.wait()
        settled = await person.stop()
        assert hang.closed.is_set()
        assert settled is not None
        assert settled.outcome == Interrupted("user")
        assert list(person.transcript)[: len(before)] == before
        assert not any(isinstance(message, AssistantMessage) and message.is_partial for message in person.transcript)
        await talk(person, "three")
        assert await person.door.change(Compact("c2")) is None
        await person.door.idle()
        assert "the notes" in person.transcript[0].text
    assert len(provider.requests) == 5


@in_virtual_time
async def test_a_cut_in_a_summary_that_a_turn_needed_keeps_the_prompt_for_the_next_one() -> None:
    hang = Hang()
    provider = script(["a"], ["b"], [TOO_LONG], [hang], ["done"])
    async with running(chain(Route("main", provider))) as person:
        await talk(person, "one", "two")
        await person.say("three")
        await hang.reached.wait()
        await person.stop()
        await talk(person, "four")
    assert told(provider.requests[-1].messages) == ["one", "two", "three", "four"]


async def test_the_summary_is_there_after_a_restart() -> None:
    memory = SharedMemory()
    first = script(["a"], ["b"], ["the notes"])
    bench = replace(chain(Route("main", first)), store=MemoryStore(memory, "one", TestClock()))
    async with running(bench) as person:
        await talk(person, "one", "two")
        assert await person.door.change(Compact("c1", "keep the names")) is None
        assert isinstance(await person.door.idle(), Completed)
        before = list(person.transcript)
    second = script(["c"])
    bench = replace(chain(Route("main", second)), store=MemoryStore(memory, "two", TestClock()))
    async with running(bench) as person:
        await person.door.known()
        assert list(person.transcript) == before
        await person.say("three", name="z1")
        assert await person.door.idle() == Completed("c")
    assert list(second.requests[0].messages) == [*before, UserMessage("z1", "three")]
    assert "keep the names" in first.requests[-1].messages[-1].text


@in_virtual_time
async def test_a_compaction_that_a_person_asks_for_needs_no_full_context() -> None:
    provider = script(["a"], ["b"], ["the notes"], ["c"])
    async with running(chain(Route("main", provider, context_tokens=1_000_000))) as person:
        await talk(person, "one", "two")
        assert await person.door.change(Compact("c1")) is None
        outcome = await person.door.idle()
        assert isinstance(outcome, Completed)
        assert "became a summary" in outcome.text
        await talk(person, "three")
    assert "the notes" in provider.requests[-1].messages[0].text


@in_virtual_time
async def test_a_compaction_of_nothing_asks_no_model() -> None:
    provider = script()
    async with running(chain(Route("main", provider))) as person:
        assert await person.door.change(Compact("c1")) is None
        assert await person.door.idle() == Completed("There is nothing old enough to summarise.")
    assert provider.requests == []


@in_virtual_time
async def test_a_compaction_while_a_turn_runs_is_refused_and_changes_nothing() -> None:
    hang = Hang()
    async with running(chain(Route("main", script([hang])))) as person:
        await person.say("go")
        await hang.reached.wait()
        refusal = await person.door.change(Compact("c1"))
        assert refusal is not None
        assert refusal.code == "busy"
        await person.stop()


@in_virtual_time
async def test_a_compaction_that_fails_says_why_and_leaves_all_as_it_was() -> None:
    provider = script(["a"], ["b"], *[[Fail(Overloaded("529: Overloaded"))]] * 7)
    async with running(chain(Route("main", provider))) as person:
        await talk(person, "one", "two")
        before = list(person.transcript)
        await person.door.change(Compact("c1"))
        outcome = await person.door.idle()
        assert isinstance(outcome, Failed)
        assert "529: Overloaded" in outcome.error.message
        assert list(person.transcript)[: len(before)] == before
    assert len(provider.requests) == 9


async def test_a_compaction_that_waited_for_an_owner_goes_before_the_message_behind_it() -> None:
    provider = script(["hello"])
    bench = chain(Route("main", provider))
    await bench.store.inbox.put("demo", Compact("c1"))
    await bench.store.inbox.put("demo", Say("m9", "hi"))
    async with running(bench) as person:
        assert await person.door.idle() == Completed("hello")
        assert told(person.transcript) == ["hi"]
        assert person.door.state.turns == 2


async def test_a_compaction_that_is_asked_for_while_the_session_closes_is_refused() -> None:
    provider = script(["a"], ["b"], [Hang()])
    async with running(chain(Route("main", provider))) as person:
        await talk(person, "one", "two")
        person.door.close()
        refusal = await person.door.change(Compact("c1"))
        assert refusal is not None
        assert refusal.code == "closing"
    assert len(provider.requests) == 2
