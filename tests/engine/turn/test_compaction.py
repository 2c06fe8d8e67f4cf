"""Compaction: older messages are replaced by a summary, and an interruption during it loses nothing."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hark.engine.turn.compaction import INSTRUCTIONS, count_to_summarise, is_full, summarise
from hark.engine.turn.reply import ReplyBuilder
from hark.engine.turn.routes import Route
from hark.engine.turn.tokens import estimate_total_tokens
from hark.engine.turn.transcript import KEPT_USER_MESSAGES
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
from hark.protocol.rules import Limits, Rules
from hark.providers.scripted import Fail, Hang, ScriptedProvider, ScriptStep
from hark.store.memory import MemoryStore, SharedMemory
from tests.engine.engine_fixture import SessionUser, TestClock, call_chunks, quick_tool, run_session
from tests.engine.route_chain import DOWN, LOST, in_virtual_time, scripted_provider, services_with_routes

LONG = "word " * 1_000  # about 1,430 tokens
TOO_LONG = Fail(ContextTooLong("The model server answered 400: maximum context length is 8192 tokens"))
WINDOW = 5_000


def call_messages(call: str, text: str = "seen") -> list[Message]:
    return [AssistantMessage("", (Call(call, "look"),)), CallResult(call, "look", text, Effect.COMPLETED)]


def user_texts(messages: Sequence[Message]) -> list[str]:
    """Return the texts of the user's messages, in order."""
    return [message.text for message in messages if isinstance(message, UserMessage)]


def check_call_results(messages: Sequence[Message]) -> None:
    """Raise AssertionError unless each message with calls is directly followed by exactly their results."""
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, CallResult):
            open_calls.remove(message.call)
            continue
        assert not open_calls
        if isinstance(message, AssistantMessage):
            open_calls = [call.id for call in message.calls]
    assert not open_calls


def are_summary_requests(provider: ScriptedProvider) -> list[bool]:
    lasts = [request.messages[-1] for request in provider.requests]
    return [isinstance(last, Note) and last.text.startswith(INSTRUCTIONS) for last in lasts]


# How many messages to summarise.


def test_an_unknown_context_window_is_never_full_and_a_known_window_is_full_before_its_limit() -> None:
    messages = [UserMessage("1", LONG)]
    tokens = estimate_total_tokens(messages)
    assert not is_full(tokens, None)
    assert not is_full(tokens, tokens * 2)
    assert is_full(tokens, int(tokens * 1.2))


def test_the_token_estimate_counts_attachments_arguments_and_reasoning() -> None:
    plain = estimate_total_tokens([UserMessage("1", ""), AssistantMessage("x")])
    file = Attachment("image/png", data="x")
    rich = [UserMessage("1", "", "", (file,)), AssistantMessage("x", (Call("c", "n", LONG),), (Reasoning(LONG),))]
    assert estimate_total_tokens(rich) > plain + 1_500 + 2_800


def test_a_call_and_its_results_are_never_split_by_a_compaction() -> None:
    messages: list[Message] = [
        UserMessage("1", "go"),
        *call_messages("a", LONG),
        *call_messages("b", LONG),
        *call_messages("c", LONG),
    ]
    messages += [AssistantMessage("done"), UserMessage("2", "more"), *call_messages("d", LONG)]
    counts = {
        count_to_summarise(messages, keep_tokens) for keep_tokens in range(0, estimate_total_tokens(messages) + 10, 25)
    }
    assert len(counts - {0}) >= 4
    for count in counts - {0}:
        check_call_results(messages[:count])
        check_call_results(messages[count:])


def test_the_last_exchange_is_kept_even_if_the_token_limit_is_zero() -> None:
    messages: list[Message] = [UserMessage("1", "a"), AssistantMessage("b"), UserMessage("2", "c")]
    assert count_to_summarise(messages, 0) == 2
    assert count_to_summarise([*messages, *call_messages("x")], 0) == 3


def test_nothing_is_summarised_when_messages_are_few_or_short_or_must_be_kept() -> None:
    user, reply = UserMessage("1", LONG), AssistantMessage("b")
    assert count_to_summarise([], 0) == 0
    assert count_to_summarise([user], 0) == 0
    assert count_to_summarise([user, reply], 0) == 0
    assert count_to_summarise([Note("a summary"), user, user, user, UserMessage("2", "now")], 0) == 0
    assert count_to_summarise([user, reply, UserMessage("2", "now")], 0, min_tokens=500) == 0
    assert count_to_summarise([user, AssistantMessage(LONG), UserMessage("2", "now")], 0, min_tokens=500) == 2


async def test_a_summary_request_that_is_too_long_is_retried_with_clipped_texts() -> None:
    sizes: list[int] = []

    async def ask(messages: Sequence[Message]) -> ReplyBuilder:
        check_call_results(messages)
        sizes.append(estimate_total_tokens(messages))
        if sizes[-1] > 1_000:
            raise ContextTooLong("too long")
        reply = ReplyBuilder()
        for chunk in (TextChunk(" notes "), EndChunk()):
            reply.add(chunk)
        return reply

    summary = await summarise(ask, [UserMessage("1", LONG), *call_messages("a", LONG), *call_messages("b", LONG)])
    assert summary == "notes"
    assert len(sizes) == 3
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    "chunks", [[EndChunk()], [TextChunk("I can't."), EndChunk("refusal")]], ids=["empty", "refused"]
)
async def test_an_empty_or_refused_summary_raises_a_no_summary_error(chunks: list[TextChunk | EndChunk]) -> None:
    async def ask(messages: Sequence[Message]) -> ReplyBuilder:
        reply = ReplyBuilder()
        for chunk in chunks:
            reply.add(chunk)
        return reply

    with pytest.raises(ProviderError) as caught:
        await summarise(ask, [UserMessage("1", "x")])
    assert caught.value.code == "no_summary"


# During a turn.


async def send_all(user: SessionUser, *texts: str) -> None:
    for text in texts:
        await user.say(text)
        assert isinstance(await user.proxy.idle(), Completed)


@in_virtual_time
async def test_older_messages_are_summarised_before_the_context_is_full() -> None:
    provider = scripted_provider([LONG], [LONG], ["the notes"], ["done"])
    async with run_session(services_with_routes(Route("main", provider, context_tokens=WINDOW))) as user:
        await send_all(user, "one", "two " + LONG)
        await send_all(user, "three")
        messages = list(user.transcript)
    assert are_summary_requests(provider) == [False, False, True, False]
    last = provider.requests[-1].messages
    assert estimate_total_tokens(last) < WINDOW * 0.8
    assert isinstance(last[0], Note)
    assert "the notes" in last[0].text
    assert user_texts(last) == ["one", "two " + LONG, "three"]
    assert messages[-1] == AssistantMessage("done")
    notices = [event.text for event in user.recorder.of_kind(Notice) if event.code == "compaction"]
    assert len(notices) == 2
    assert "older messages in 9 characters" in notices[-1]


@in_virtual_time
async def test_a_summary_request_has_the_same_prefix_as_the_last_request_for_the_cache() -> None:
    provider = scripted_provider([LONG], [LONG], ["the notes"], ["done"])
    services = services_with_routes(Route("main", provider, context_tokens=WINDOW), tools=[quick_tool()])
    async with run_session(services) as user:
        await send_all(user, "one", "two " + LONG, "three")
    before, summary_request = provider.requests[1], provider.requests[2]
    assert (summary_request.system, summary_request.tools) == (before.system, before.tools)
    assert list(summary_request.messages)[: len(before.messages)] == list(before.messages)


@in_virtual_time
async def test_the_summary_is_not_shown_as_a_reply() -> None:
    provider = scripted_provider([LONG], [LONG], ["the notes"], ["done"])
    async with run_session(services_with_routes(Route("main", provider, context_tokens=WINDOW))) as user:
        await send_all(user, "one", "two " + LONG, "three")
    assert "the notes" not in [event.text for event in user.recorder.of_kind(ReplyDelta)]


@in_virtual_time
async def test_a_context_that_cannot_be_shortened_is_not_summarised_at_every_step() -> None:
    provider = scripted_provider(["a"], ["b"], *[[*call_chunks("look")]] * 5, ["done"])
    services = services_with_routes(Route("main", provider, context_tokens=1_000), tools=[quick_tool()])
    async with run_session(services) as user:
        await send_all(user, LONG, LONG, LONG)
    assert True not in are_summary_requests(provider)
    assert len(provider.requests) == 8


@in_virtual_time
async def test_a_failed_early_summary_is_reported_and_the_turn_continues() -> None:
    provider = scripted_provider([LONG], [LONG], [EndChunk()], [*call_chunks("look")], ["done"])
    services = services_with_routes(Route("main", provider, context_tokens=WINDOW), tools=[quick_tool()])
    async with run_session(services) as user:
        await send_all(user, "one", "two " + LONG, "three")
    assert are_summary_requests(provider) == [False, False, True, False, False]
    assert user.recorder.outcomes[-1] == Completed("done")
    assert any("Could not summarise" in event.text for event in user.recorder.of_kind(Notice))


@in_virtual_time
async def test_a_route_that_failed_gets_no_summary_request_until_it_responds() -> None:
    wrong = [Fail(BadKey("The key is wrong."))]
    provider = scripted_provider([LONG], wrong, wrong, ["mended"], ["the notes"], ["done"])
    async with run_session(services_with_routes(Route("main", provider, context_tokens=WINDOW))) as user:
        for text in ("one", "two " + LONG, "three " + LONG, "four", "five"):
            await user.say(text)
            await user.proxy.idle()
    assert are_summary_requests(provider) == [False, False, False, False, True, False]
    assert user.recorder.outcomes[-2:] == [Completed("mended"), Completed("done")]


@in_virtual_time
async def test_a_context_too_long_error_compacts_and_retries() -> None:
    provider = scripted_provider(["a"], ["b"], [TOO_LONG], ["the notes"], ["done"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, "one", "two", "three")
    assert are_summary_requests(provider) == [False, False, False, True, False]
    assert user_texts(provider.requests[-1].messages) == ["one", "two", "three"]
    assert "the notes" in provider.requests[-1].messages[0].text


@in_virtual_time
async def test_a_context_too_long_error_overrides_the_configured_window() -> None:
    provider = scripted_provider(["a"], ["b"], [TOO_LONG], ["the notes"], ["done"])
    async with run_session(services_with_routes(Route("main", provider, context_tokens=1_000_000))) as user:
        await send_all(user, "one", "two", "three")
    assert user.recorder.outcomes[-1] == Completed("done")


@in_virtual_time
async def test_the_request_is_repeated_when_a_summary_replaced_a_single_message() -> None:
    provider = scripted_provider([LONG], [TOO_LONG], ["the notes"], ["done"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, "one", "two")
    assert are_summary_requests(provider) == [False, False, True, False]


@in_virtual_time
async def test_an_early_summary_that_never_ends_is_abandoned_and_the_turn_continues() -> None:
    provider = scripted_provider([LONG], [LONG], [LONG, LONG], ["done"])
    rules = Rules(limits=Limits(reply_characters=6_000))
    async with run_session(services_with_routes(Route("main", provider, context_tokens=WINDOW), rules=rules)) as user:
        await send_all(user, "one", "two " + LONG, "three")
    assert user.recorder.outcomes[-1] == Completed("done")
    assert any("Could not summarise" in event.text for event in user.recorder.of_kind(Notice))


@in_virtual_time
async def test_compaction_during_a_turn_keeps_calls_with_their_results() -> None:
    steps = [[*call_chunks("look", "look")] for _ in range(3)]
    provider = scripted_provider(*steps, [TOO_LONG], ["the notes"], ["done"])
    async with run_session(services_with_routes(Route("main", provider), tools=[quick_tool(text=LONG)])) as user:
        await send_all(user, "one")
    for request in provider.requests:
        check_call_results(request.messages)
    assert user_texts(provider.requests[-1].messages) == ["one"]
    assert estimate_total_tokens(provider.requests[-1].messages) < estimate_total_tokens(provider.requests[-3].messages)


@in_virtual_time
async def test_the_turn_fails_with_the_servers_message_when_the_request_is_still_too_long_after_compaction() -> None:
    provider = scripted_provider(["a"], ["b"], [TOO_LONG], ["the notes"], [TOO_LONG], ["never"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, "one", "two")
        await user.say("three")
        outcome = await user.proxy.idle()
    assert isinstance(outcome, Failed)
    assert outcome.error.code == "context_too_long"
    assert "maximum context length is 8192" in outcome.error.message
    assert len(provider.requests) == 5


@in_virtual_time
async def test_a_context_too_long_error_with_nothing_to_summarise_fails_with_the_servers_message() -> None:
    provider = scripted_provider([TOO_LONG], ["never"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await user.say(LONG)
        outcome = await user.proxy.idle()
    assert isinstance(outcome, Failed)
    assert "maximum context length is 8192" in outcome.error.message
    assert len(provider.requests) == 1


@in_virtual_time
async def test_a_history_too_long_to_be_summarised_whole_is_clipped_and_summarised() -> None:
    def answer(request: Request) -> list[ScriptStep]:
        is_long = estimate_total_tokens(request.messages) > 2_000
        return [TOO_LONG] if is_long else ["notes" if request.messages[-1] == Note(INSTRUCTIONS) else "done"]

    provider = scripted_provider([LONG], [LONG], *[answer] * 4)
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, "one", "two", "three")
    assert user.recorder.outcomes[-1] == Completed("done")
    assert are_summary_requests(provider) == [False, False, False, True, True, False]


@in_virtual_time
async def test_text_shown_before_a_context_too_long_error_is_discarded() -> None:
    provider = scripted_provider(["a"], ["b"], ["half", TOO_LONG], ["the notes"], ["whole"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, "one", "two", "three")
    assert len(user.recorder.of_kind(ReplyRestarted)) == 1


@in_virtual_time
async def test_the_users_last_messages_are_kept_unchanged() -> None:
    texts = [f"message {number}" for number in range(8)]
    provider = scripted_provider(*[["ok"]] * 7, [TOO_LONG], ["the notes"], ["done"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, *texts)
    kept = user_texts(provider.requests[-1].messages)
    assert KEPT_USER_MESSAGES < len(kept) < len(texts)
    assert kept == texts[-len(kept) :]


@in_virtual_time
async def test_a_summary_request_is_retried_after_a_transient_error_and_rerouted_after_a_permanent_one() -> None:
    first = scripted_provider(["a"], ["b"], [TOO_LONG], [LOST], [DOWN])
    second = scripted_provider(["the notes"], ["done"])
    async with run_session(services_with_routes(Route("first", first), Route("second", second))) as user:
        await send_all(user, "one", "two", "three")
    assert [event.route for event in user.recorder.of_kind(RouteChanged)] == ["second"]
    assert are_summary_requests(second) == [True, False]


@in_virtual_time
async def test_a_stalled_summary_request_is_closed_and_retried() -> None:
    hang = Hang()
    provider = scripted_provider(["a"], ["b"], [TOO_LONG], [hang], ["the notes"], ["done"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, "one", "two", "three")
    assert hang.closed.is_set()
    assert user.recorder.outcomes[-1] == Completed("done")


@in_virtual_time
async def test_the_cost_of_a_summary_is_counted() -> None:
    paid = UsageChunk(Usage(1_000_000, 0))
    provider = scripted_provider(["a"], ["b"], [TOO_LONG], ["the notes", paid], ["done", paid])
    async with run_session(services_with_routes(Route("main", provider, input_price=2.0, output_price=9.0))) as user:
        await send_all(user, "one", "two", "three")
        end = user.proxy.state.last_end
    assert end is not None
    assert end.cost == pytest.approx(4.0)
    assert end.usage == Usage(2_000_000, 0)


# Interrupted, requested by the user, persisted.


@in_virtual_time
async def test_an_interruption_during_a_summary_loses_neither_messages_nor_summary() -> None:
    hang = Hang()
    provider = scripted_provider(["a"], ["b"], ["half of the no", hang], ["later"], ["the notes"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, "one", "two")
        before = list(user.transcript)
        assert await user.proxy.change(Compact("c1")) is None
        await hang.reached.wait()
        settled = await user.stop()
        assert hang.closed.is_set()
        assert settled is not None
        assert settled.outcome == Interrupted("user")
        assert list(user.transcript)[: len(before)] == before
        assert not any(isinstance(message, AssistantMessage) and message.is_partial for message in user.transcript)
        await send_all(user, "three")
        assert await user.proxy.change(Compact("c2")) is None
        await user.proxy.idle()
        assert "the notes" in user.transcript[0].text
    assert len(provider.requests) == 5


@in_virtual_time
async def test_an_interruption_during_a_turns_summary_keeps_the_prompt_for_the_next_turn() -> None:
    hang = Hang()
    provider = scripted_provider(["a"], ["b"], [TOO_LONG], [hang], ["done"])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, "one", "two")
        await user.say("three")
        await hang.reached.wait()
        await user.stop()
        await send_all(user, "four")
    assert user_texts(provider.requests[-1].messages) == ["one", "two", "three", "four"]


async def test_the_summary_survives_a_restart() -> None:
    memory = SharedMemory()
    first = scripted_provider(["a"], ["b"], ["the notes"])
    services = replace(services_with_routes(Route("main", first)), store=MemoryStore(memory, "one", TestClock()))
    async with run_session(services) as user:
        await send_all(user, "one", "two")
        assert await user.proxy.change(Compact("c1", "keep the names")) is None
        assert isinstance(await user.proxy.idle(), Completed)
        before = list(user.transcript)
    second = scripted_provider(["c"])
    services = replace(services_with_routes(Route("main", second)), store=MemoryStore(memory, "two", TestClock()))
    async with run_session(services) as user:
        await user.proxy.wait_until_loaded()
        assert list(user.transcript) == before
        await user.say("three", message_id="z1")
        assert await user.proxy.idle() == Completed("c")
    assert list(second.requests[0].messages) == [*before, UserMessage("z1", "three")]
    assert "keep the names" in first.requests[-1].messages[-1].text


@in_virtual_time
async def test_a_compaction_requested_by_the_user_does_not_need_a_full_context() -> None:
    provider = scripted_provider(["a"], ["b"], ["the notes"], ["c"])
    async with run_session(services_with_routes(Route("main", provider, context_tokens=1_000_000))) as user:
        await send_all(user, "one", "two")
        assert await user.proxy.change(Compact("c1")) is None
        outcome = await user.proxy.idle()
        assert isinstance(outcome, Completed)
        assert "Summarised" in outcome.text
        await send_all(user, "three")
    assert "the notes" in provider.requests[-1].messages[0].text


@in_virtual_time
async def test_a_compaction_of_an_empty_session_makes_no_model_call() -> None:
    provider = scripted_provider()
    async with run_session(services_with_routes(Route("main", provider))) as user:
        assert await user.proxy.change(Compact("c1")) is None
        assert await user.proxy.idle() == Completed("No messages are old enough to summarise.")
    assert provider.requests == []


@in_virtual_time
async def test_a_compaction_during_a_turn_is_refused_and_changes_nothing() -> None:
    hang = Hang()
    async with run_session(services_with_routes(Route("main", scripted_provider([hang])))) as user:
        await user.say("go")
        await hang.reached.wait()
        refusal = await user.proxy.change(Compact("c1"))
        assert refusal is not None
        assert refusal.code == "busy"
        await user.stop()


@in_virtual_time
async def test_a_failed_compaction_reports_the_error_and_changes_nothing() -> None:
    provider = scripted_provider(["a"], ["b"], *[[Fail(Overloaded("529: Overloaded"))]] * 7)
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, "one", "two")
        before = list(user.transcript)
        await user.proxy.change(Compact("c1"))
        outcome = await user.proxy.idle()
        assert isinstance(outcome, Failed)
        assert "529: Overloaded" in outcome.error.message
        assert list(user.transcript)[: len(before)] == before
    assert len(provider.requests) == 9


async def test_a_compaction_from_the_backlog_runs_before_a_later_message() -> None:
    provider = scripted_provider(["hello"])
    services = services_with_routes(Route("main", provider))
    await services.store.inbox.put("demo", Compact("c1"))
    await services.store.inbox.put("demo", Say("m9", "hi"))
    async with run_session(services) as user:
        assert await user.proxy.idle() == Completed("hello")
        assert user_texts(user.transcript) == ["hi"]
        assert user.proxy.state.turns == 2


async def test_a_compaction_requested_while_the_session_closes_is_refused() -> None:
    provider = scripted_provider(["a"], ["b"], [Hang()])
    async with run_session(services_with_routes(Route("main", provider))) as user:
        await send_all(user, "one", "two")
        user.proxy.close()
        refusal = await user.proxy.change(Compact("c1"))
        assert refusal is not None
        assert refusal.code == "closing"
    assert len(provider.requests) == 2
