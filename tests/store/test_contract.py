"""The contract of every store: the same tests for the memory, file and inline stores."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hark.protocol.commands import Answer, Interrupt
from hark.protocol.messages import CallResult, Effect
from hark.protocol.outcomes import Interrupted
from hark.protocol.records import CallEnded, TurnEnded
from hark.protocol.store import (
    InboxEntry,
    JournalConflict,
    Lease,
    LeaseLost,
    PutResult,
    SessionListEntry,
    SessionSummary,
)
from tests.store.store_fixtures import (
    ENVIRONMENTS,
    StoreEnvironment,
    acquire_lease,
    make_record,
    make_say,
    open_store,
    wait_for_wake,
)


@pytest.fixture(params=ENVIRONMENTS, ids=["memory", "file", "inline"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> StoreEnvironment:
    create: Callable[[Path], StoreEnvironment] = request.param
    return create(tmp_path)


async def test_a_command_with_a_known_id_is_accepted_once(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        assert await store.inbox.put("s", make_say("a")) == PutResult(1, is_new=True)
        assert await store.inbox.put("s", make_say("b")) == PutResult(2, is_new=True)
        assert await store.inbox.put("s", make_say("a", "another text")) == PutResult(1, is_new=False)
        assert await store.inbox.entries_after("s", 0) == [InboxEntry(1, make_say("a")), InboxEntry(2, make_say("b"))]


async def test_the_same_id_in_two_sessions_is_accepted_twice(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        assert await store.inbox.put("s", make_say("a")) == PutResult(1, is_new=True)
        assert await store.inbox.put("t", make_say("a")) == PutResult(1, is_new=True)


async def test_entries_after_the_given_position_are_returned_in_order(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        commands = [make_say("a"), Interrupt("b", "person", shown=3), Answer("c", "q1", "yes")]
        for command in commands:
            await store.inbox.put("s", command)
        entries = [InboxEntry(seq, command) for seq, command in enumerate(commands, 1)]
        assert await store.inbox.entries_after("s", 0) == entries
        assert await store.inbox.entries_after("s", 2) == entries[2:]
        assert await store.inbox.entries_after("s", 3) == []
        assert await store.inbox.entries_after("unknown", 0) == []


async def test_commands_from_many_tasks_are_numbered_without_gaps(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        puts = [store.inbox.put("s", make_say(f"m{n % 100}")) for n in range(200)]
        accepted = await asyncio.gather(*puts)
        assert [a.seq for a in accepted if a.is_new] == list(range(1, 101))
        assert [a.seq for a in accepted if not a.is_new] == list(range(1, 101))


async def test_another_owner_sees_stored_commands(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        other = await environment.open("other")
        await store.inbox.put("s", make_say("a"))
        assert await other.inbox.put("s", make_say("a")) == PutResult(1, is_new=False)
        assert await other.inbox.put("s", make_say("b")) == PutResult(2, is_new=True)
        assert [entry.seq for entry in await store.inbox.entries_after("s", 0)] == [1, 2]
        await other.close()


async def test_records_are_read_as_they_were_written(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        lease = await acquire_lease(store)
        records = [
            make_record("a"),
            CallEnded(turn="t1", result=CallResult("c1", "shell", "out", Effect.UNKNOWN, is_error=True), at=2.0),
            TurnEnded(turn="t1", outcome=Interrupted("person", ("sleep 9",)), at=3.0),
        ]
        await store.journal.append(lease, 0, records[:1], SessionSummary())
        await store.journal.append(lease, 1, records[1:], SessionSummary())
        assert await store.journal.read("s") == records
        assert await store.journal.read("s", after=2) == records[2:]
        assert await store.journal.read("unknown") == []


async def test_an_append_with_a_wrong_expected_length_writes_nothing(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        lease = await acquire_lease(store)
        await store.journal.append(lease, 0, [make_record("a")], SessionSummary(title="first"))
        for wrong_length in (0, 2):
            with pytest.raises(JournalConflict, match="'s'"):
                await store.journal.append(lease, wrong_length, [make_record("b")], SessionSummary(title="second"))
        assert await store.journal.read("s") == [make_record("a")]
        assert [entry.summary.title for entry in await store.journal.sessions()] == ["first"]


async def test_an_append_to_an_unknown_journal_expects_zero_records(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        lease = await acquire_lease(store)
        with pytest.raises(JournalConflict):
            await store.journal.append(lease, 1, [make_record("a")], SessionSummary())
        assert await store.journal.sessions() == []


async def test_an_append_without_records_updates_the_summary(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        lease = await acquire_lease(store)
        await store.journal.append(lease, 0, [], SessionSummary(cursor=7))
        await store.journal.append(lease, 0, [make_record("a")], SessionSummary(cursor=8))
        assert [entry.summary.cursor for entry in await store.journal.sessions()] == [8]


TEXTS = ["plain", 'quotes " and \\ and \\u0000 and \x00', "Zoë 🎙️ \u2028", "", "line\nline", "[1, 2]", "null", "1e999"]


async def test_simultaneous_appends_to_many_sessions_are_all_stored(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        leases = [await acquire_lease(store, f"s{number}") for number in range(20)]
        journals = {
            lease.session: [make_record(text, text) for text in TEXTS[: number % 9]]
            for number, lease in enumerate(leases)
        }
        summary = SessionSummary(
            3, is_open=True, is_waiting=True, turns=4, title="Zoë's \" title", updated_at=1763338800.123456
        )
        for round_number in (0, 1):
            expected = [round_number * len(journals[lease.session]) for lease in leases]
            appends = zip(leases, expected, strict=True)
            await asyncio.gather(
                *(store.journal.append(lease, length, journals[lease.session], summary) for lease, length in appends)
            )
        for session, records in journals.items():
            assert await store.journal.read(session) == records * 2
        assert {entry.summary for entry in await store.journal.sessions()} == {summary}


async def test_a_refused_append_does_not_affect_simultaneous_appends(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        leases = [await acquire_lease(store, f"s{number}") for number in range(5)]
        lost, wrong = Lease("s1", "me", 7), leases[3]
        answers = await asyncio.gather(
            store.journal.append(leases[0], 0, [make_record("a")], SessionSummary()),
            store.journal.append(lost, 0, [make_record("b")], SessionSummary()),
            store.journal.append(leases[2], 0, [make_record("c")], SessionSummary()),
            store.journal.append(wrong, 4, [make_record("d")], SessionSummary()),
            store.journal.append(leases[4], 0, [make_record("e")], SessionSummary()),
            store.journal.append(leases[4], 0, [make_record("again")], SessionSummary()),
            store.journal.append(leases[4], 1, [make_record("f")], SessionSummary()),
            return_exceptions=True,
        )
        answer_types = [type(answer).__name__ for answer in answers]
        assert answer_types == [
            "NoneType",
            "LeaseLost",
            "NoneType",
            "JournalConflict",
            "NoneType",
            "JournalConflict",
            "NoneType",
        ]
        stored = [await store.journal.read(f"s{number}") for number in range(5)]
        assert stored == [[make_record("a")], [], [make_record("c")], [], [make_record("e"), make_record("f")]]


async def test_an_old_epoch_is_fenced_even_for_the_same_owner(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        old = await acquire_lease(store)
        new = await acquire_lease(store)
        assert new.epoch == old.epoch + 1
        with pytest.raises(LeaseLost, match="'s'"):
            await store.journal.append(old, 0, [make_record("a")], SessionSummary())
        await store.journal.append(new, 0, [make_record("b")], SessionSummary())
        assert await store.journal.read("s") == [make_record("b")]


async def test_a_lease_that_was_never_granted_is_refused(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        with pytest.raises(LeaseLost):
            await store.journal.append(Lease("s", "me", 1), 0, [make_record("a")], SessionSummary())
        assert await store.journal.read("s") == []


async def test_a_session_owned_by_a_live_process_cannot_be_acquired(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        other = await environment.open("other")
        lease = await acquire_lease(store)
        environment.clock.time += 9
        assert await other.leases.acquire("s") is None
        assert await other.leases.is_owned("s")
        await store.leases.renew()
        environment.clock.time += 9
        assert await other.leases.acquire("s") is None
        await store.journal.append(lease, 0, [make_record("a")], SessionSummary())
        await other.close()


async def test_a_session_is_taken_over_when_its_lease_expires_and_the_old_owner_is_fenced(
    environment: StoreEnvironment,
) -> None:
    async with open_store(environment) as store:
        other = await environment.open("other")
        lease = await acquire_lease(store)
        environment.clock.time += 10
        await other.leases.renew()
        assert not await other.leases.is_owned("s")
        new_lease = await acquire_lease(other)
        assert new_lease == Lease("s", "other", lease.epoch + 1)
        with pytest.raises(LeaseLost):
            await store.journal.append(lease, 0, [make_record("late")], SessionSummary())
        await store.leases.renew()
        assert await store.leases.acquire("s") is None
        await other.journal.append(new_lease, 0, [make_record("a")], SessionSummary())
        assert await store.journal.read("s") == [make_record("a")]
        await other.close()


async def test_a_released_session_can_be_acquired_with_the_next_epoch(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        other = await environment.open("other")
        lease = await acquire_lease(store)
        await store.leases.release(lease)
        with pytest.raises(LeaseLost):
            await store.journal.append(lease, 0, [make_record("a")], SessionSummary())
        assert await other.leases.acquire("s") == Lease("s", "other", lease.epoch + 1)
        await other.close()


async def test_releasing_an_old_lease_does_not_affect_the_new_lease(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        old = await acquire_lease(store)
        new = await acquire_lease(store)
        await store.leases.release(old)
        await store.journal.append(new, 0, [make_record("a")], SessionSummary())
        assert await store.journal.read("s") == [make_record("a")]


async def test_closing_a_store_releases_its_leases(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        other = await environment.open("other")
        lease = await acquire_lease(other)
        await other.close()
        assert await store.leases.acquire("s") == Lease("s", "me", lease.epoch + 1)


async def test_sessions_with_unread_entries_an_open_turn_or_queued_messages_are_unfinished(
    environment: StoreEnvironment,
) -> None:
    async with open_store(environment) as store:
        summaries = {
            "behind": SessionSummary(cursor=1),
            "done": SessionSummary(cursor=2),
            "open": SessionSummary(cursor=2, is_open=True),
            "waiting": SessionSummary(cursor=2, is_waiting=True),
        }
        for session, summary in summaries.items():
            await store.inbox.put(session, make_say("a"))
            await store.inbox.put(session, make_say("b"))
            await store.journal.append(await acquire_lease(store, session), 0, [make_record("a")], summary)
        await store.inbox.put("new", make_say("a"))
        await store.journal.append(await acquire_lease(store, "without inbox"), 0, [], SessionSummary(is_open=True))
        assert await store.inbox.unfinished_sessions() == ["behind", "new", "open", "waiting", "without inbox"]
        assert await store.inbox.unread_sessions() == ["behind", "new"]


async def test_an_empty_store_has_no_unfinished_sessions(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        assert await store.inbox.unfinished_sessions() == []


async def test_sessions_are_listed_by_their_last_change_newest_first(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        full = SessionSummary(cursor=3, is_open=True, is_waiting=True, turns=2, title="Café", updated_at=5.5)
        await store.journal.append(
            await acquire_lease(store, "a"), 0, [make_record("a")], SessionSummary(updated_at=1.0)
        )
        await store.journal.append(await acquire_lease(store, "b"), 0, [make_record("a")], full)
        await store.journal.append(
            await acquire_lease(store, "c"), 0, [make_record("a")], SessionSummary(updated_at=2.0)
        )
        entries = [
            SessionListEntry("b", full),
            SessionListEntry("c", SessionSummary(updated_at=2.0)),
            SessionListEntry("a", SessionSummary(updated_at=1)),
        ]
        assert await store.journal.sessions() == entries


async def test_a_deleted_session_no_longer_exists_and_its_owner_is_fenced(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        lease = await acquire_lease(store)
        await store.inbox.put("s", make_say("a"))
        await store.inbox.put("t", make_say("a"))
        await store.journal.append(lease, 0, [make_record("a")], SessionSummary(is_open=True))
        assert await store.journal.delete("s")
        assert not await store.journal.delete("s")
        assert await store.inbox.entries_after("s", 0) == []
        assert await store.journal.read("s") == []
        assert await store.journal.sessions() == []
        assert await store.inbox.unfinished_sessions() == ["t"]
        with pytest.raises(LeaseLost):
            await store.journal.append(lease, 0, [make_record("a")], SessionSummary())
        assert (await acquire_lease(store)).epoch == lease.epoch + 1
        assert await store.inbox.put("s", make_say("a")) == PutResult(1, is_new=True)


async def test_a_thousand_interleaved_appends_keep_their_order(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        leases = [await acquire_lease(store, f"s{n}") for n in range(10)]

        async def write(lease: Lease) -> None:
            appends = [
                asyncio.ensure_future(store.journal.append(lease, n, [make_record(str(n))], SessionSummary()))
                for n in range(100)
            ]
            await asyncio.gather(*appends)

        await asyncio.gather(*(write(lease) for lease in leases))
        for lease in leases:
            assert await store.journal.read(lease.session) == [make_record(str(n)) for n in range(100)]


async def test_a_cancelled_append_is_still_written(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        lease = await acquire_lease(store)
        cancelled = asyncio.ensure_future(store.journal.append(lease, 0, [make_record("a")], SessionSummary()))
        await asyncio.sleep(0)
        cancelled.cancel()
        await store.journal.append(lease, 1, [make_record("b")], SessionSummary())
        assert await store.journal.read("s") == [make_record("a"), make_record("b")]


@pytest.mark.parametrize(
    "text", ["zürich 🎙️ 漢字 \u2028", "a\x00b", "x" * 10_000_000, ""], ids=["unicode", "nul", "big", "empty"]
)
async def test_any_text_is_stored_unchanged(environment: StoreEnvironment, text: str) -> None:
    async with open_store(environment) as store:
        name = text[:20]
        lease = await acquire_lease(store, name)
        await store.inbox.put(name, make_say(name, text))
        await store.journal.append(lease, 0, [make_record(name, text)], SessionSummary(title=name))
        assert await store.inbox.entries_after(name, 0) == [InboxEntry(1, make_say(name, text))]
        assert await store.inbox.put(name, make_say(name)) == PutResult(1, is_new=False)
        assert await store.journal.read(name) == [make_record(name, text)]
        assert await store.journal.sessions() == [SessionListEntry(name, SessionSummary(title=name))]


async def test_a_wake_up_reaches_all_owners_except_its_sender(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        other, third = await environment.open("other"), await environment.open("third")
        await store.bus.wake("s")
        await other.bus.wake("t")
        assert {await wait_for_wake(third.bus), await wait_for_wake(third.bus)} == {"s", "t"}
        assert await wait_for_wake(other.bus) == "s"
        assert await wait_for_wake(store.bus) == "t"
        await other.close()
        await third.close()


async def test_wake_ups_end_when_the_store_is_closed(environment: StoreEnvironment) -> None:
    async with open_store(environment) as store:
        other = await environment.open("other")
        waiting = asyncio.ensure_future(wait_for_wake(other.bus))
        await asyncio.sleep(0)
        await other.close()
        with pytest.raises(StopAsyncIteration):
            await waiting
        await store.bus.wake("s")
