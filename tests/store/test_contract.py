"""What every store keeps: the same sentences for memory, a file, and the SQL without threads."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hark.protocol.commands import Answer, Interrupt
from hark.protocol.messages import CallResult, Effect
from hark.protocol.outcomes import Interrupted
from hark.protocol.records import CallEnded, TurnEnded
from hark.protocol.store import Accepted, Entry, JournalConflict, Lease, LeaseLost, SessionLine, Summary
from tests.store.store_fixtures import WORLDS, World, next_wake, opened, owned, record, say


@pytest.fixture(params=WORLDS, ids=["memory", "file", "inline"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    make: Callable[[Path], World] = request.param
    return make(tmp_path)


async def test_a_message_with_a_known_id_is_accepted_once(world: World) -> None:
    async with opened(world) as store:
        assert await store.inbox.put("s", say("a")) == Accepted(1, is_new=True)
        assert await store.inbox.put("s", say("b")) == Accepted(2, is_new=True)
        assert await store.inbox.put("s", say("a", "other words")) == Accepted(1, is_new=False)
        assert await store.inbox.after("s", 0) == [Entry(1, say("a")), Entry(2, say("b"))]


async def test_the_same_id_in_two_sessions_is_two_messages(world: World) -> None:
    async with opened(world) as store:
        assert await store.inbox.put("s", say("a")) == Accepted(1, is_new=True)
        assert await store.inbox.put("t", say("a")) == Accepted(1, is_new=True)


async def test_entries_come_in_order_and_behind_the_asked_one(world: World) -> None:
    async with opened(world) as store:
        commands = [say("a"), Interrupt("b", "person", shown=3), Answer("c", "q1", "yes")]
        for command in commands:
            await store.inbox.put("s", command)
        entries = [Entry(seq, command) for seq, command in enumerate(commands, 1)]
        assert await store.inbox.after("s", 0) == entries
        assert await store.inbox.after("s", 2) == entries[2:]
        assert await store.inbox.after("s", 3) == []
        assert await store.inbox.after("unknown", 0) == []


async def test_messages_of_many_tasks_get_numbers_without_gaps(world: World) -> None:
    async with opened(world) as store:
        puts = [store.inbox.put("s", say(f"m{n % 100}")) for n in range(200)]
        accepted = await asyncio.gather(*puts)
        assert [a.seq for a in accepted if a.is_new] == list(range(1, 101))
        assert [a.seq for a in accepted if not a.is_new] == list(range(1, 101))


async def test_another_owner_sees_what_was_put(world: World) -> None:
    async with opened(world) as store:
        other = await world.open("other")
        await store.inbox.put("s", say("a"))
        assert await other.inbox.put("s", say("a")) == Accepted(1, is_new=False)
        assert await other.inbox.put("s", say("b")) == Accepted(2, is_new=True)
        assert [entry.seq for entry in await store.inbox.after("s", 0)] == [1, 2]
        await other.close()


async def test_records_are_read_as_they_were_written(world: World) -> None:
    async with opened(world) as store:
        lease = await owned(store)
        records = [
            record("a"),
            CallEnded(turn="t1", result=CallResult("c1", "shell", "out", Effect.UNKNOWN, is_error=True), at=2.0),
            TurnEnded(turn="t1", outcome=Interrupted("person", ("sleep 9",)), at=3.0),
        ]
        await store.journal.append(lease, 0, records[:1], Summary())
        await store.journal.append(lease, 1, records[1:], Summary())
        assert await store.journal.read("s") == records
        assert await store.journal.read("s", after=2) == records[2:]
        assert await store.journal.read("unknown") == []


async def test_an_append_behind_a_wrong_length_writes_nothing(world: World) -> None:
    async with opened(world) as store:
        lease = await owned(store)
        await store.journal.append(lease, 0, [record("a")], Summary(title="first"))
        for wrong in (0, 2):
            with pytest.raises(JournalConflict, match="'s'"):
                await store.journal.append(lease, wrong, [record("b")], Summary(title="second"))
        assert await store.journal.read("s") == [record("a")]
        assert [line.summary.title for line in await store.journal.sessions()] == ["first"]


async def test_an_append_to_an_unknown_journal_expects_none(world: World) -> None:
    async with opened(world) as store:
        lease = await owned(store)
        with pytest.raises(JournalConflict):
            await store.journal.append(lease, 1, [record("a")], Summary())
        assert await store.journal.sessions() == []


async def test_an_append_without_records_renews_the_summary(world: World) -> None:
    async with opened(world) as store:
        lease = await owned(store)
        await store.journal.append(lease, 0, [], Summary(cursor=7))
        await store.journal.append(lease, 0, [record("a")], Summary(cursor=8))
        assert [line.summary.cursor for line in await store.journal.sessions()] == [8]


TEXTS = ["plain", 'quotes " and \\ and \\u0000 and \x00', "Zoë 🎙️ \u2028", "", "line\nline", "[1, 2]", "null", "1e999"]


async def test_appends_of_many_sessions_at_one_moment_are_kept_as_they_are(world: World) -> None:
    async with opened(world) as store:
        leases = [await owned(store, f"s{number}") for number in range(20)]
        journals = {
            lease.session: [record(text, text) for text in TEXTS[: number % 9]] for number, lease in enumerate(leases)
        }
        summary = Summary(
            3, is_open=True, is_waiting=True, turns=4, title="Zoë's \" title", updated_at=1763338800.123456
        )
        for begin in (0, 1):
            expected = [begin * len(journals[lease.session]) for lease in leases]
            appends = zip(leases, expected, strict=True)
            await asyncio.gather(
                *(store.journal.append(lease, length, journals[lease.session], summary) for lease, length in appends)
            )
        for session, records in journals.items():
            assert await store.journal.read(session) == records * 2
        assert {line.summary for line in await store.journal.sessions()} == {summary}


async def test_of_many_appends_at_one_moment_each_is_refused_alone(world: World) -> None:
    async with opened(world) as store:
        leases = [await owned(store, f"s{number}") for number in range(5)]
        lost, wrong = Lease("s1", "me", 7), leases[3]
        answers = await asyncio.gather(
            store.journal.append(leases[0], 0, [record("a")], Summary()),
            store.journal.append(lost, 0, [record("b")], Summary()),
            store.journal.append(leases[2], 0, [record("c")], Summary()),
            store.journal.append(wrong, 4, [record("d")], Summary()),
            store.journal.append(leases[4], 0, [record("e")], Summary()),
            store.journal.append(leases[4], 0, [record("again")], Summary()),
            store.journal.append(leases[4], 1, [record("f")], Summary()),
            return_exceptions=True,
        )
        kinds = [type(answer).__name__ for answer in answers]
        assert kinds == [
            "NoneType",
            "LeaseLost",
            "NoneType",
            "JournalConflict",
            "NoneType",
            "JournalConflict",
            "NoneType",
        ]
        kept = [await store.journal.read(f"s{number}") for number in range(5)]
        assert kept == [[record("a")], [], [record("c")], [], [record("e"), record("f")]]


async def test_a_lower_epoch_is_fenced_even_for_the_same_owner(world: World) -> None:
    async with opened(world) as store:
        old = await owned(store)
        new = await owned(store)
        assert new.epoch == old.epoch + 1
        with pytest.raises(LeaseLost, match="'s'"):
            await store.journal.append(old, 0, [record("a")], Summary())
        await store.journal.append(new, 0, [record("b")], Summary())
        assert await store.journal.read("s") == [record("b")]


async def test_a_lease_that_was_never_given_is_refused(world: World) -> None:
    async with opened(world) as store:
        with pytest.raises(LeaseLost):
            await store.journal.append(Lease("s", "me", 1), 0, [record("a")], Summary())
        assert await store.journal.read("s") == []


async def test_a_session_of_a_live_owner_is_not_given_away(world: World) -> None:
    async with opened(world) as store:
        other = await world.open("other")
        lease = await owned(store)
        world.clock.time += 9
        assert await other.leases.acquire("s") is None
        assert await other.leases.is_owned("s")
        await store.leases.renew()
        world.clock.time += 9
        assert await other.leases.acquire("s") is None
        await store.journal.append(lease, 0, [record("a")], Summary())
        await other.close()


async def test_a_session_of_an_expired_owner_is_taken_over_and_the_first_is_fenced(world: World) -> None:
    async with opened(world) as store:
        other = await world.open("other")
        lease = await owned(store)
        world.clock.time += 10
        await other.leases.renew()
        assert not await other.leases.is_owned("s")
        taken = await owned(other)
        assert taken == Lease("s", "other", lease.epoch + 1)
        with pytest.raises(LeaseLost):
            await store.journal.append(lease, 0, [record("late")], Summary())
        await store.leases.renew()
        assert await store.leases.acquire("s") is None
        await other.journal.append(taken, 0, [record("a")], Summary())
        assert await store.journal.read("s") == [record("a")]
        await other.close()


async def test_a_released_session_is_free_and_its_epoch_goes_on(world: World) -> None:
    async with opened(world) as store:
        other = await world.open("other")
        lease = await owned(store)
        await store.leases.release(lease)
        with pytest.raises(LeaseLost):
            await store.journal.append(lease, 0, [record("a")], Summary())
        assert await other.leases.acquire("s") == Lease("s", "other", lease.epoch + 1)
        await other.close()


async def test_the_release_of_an_old_lease_leaves_the_new_one_alone(world: World) -> None:
    async with opened(world) as store:
        old = await owned(store)
        new = await owned(store)
        await store.leases.release(old)
        await store.journal.append(new, 0, [record("a")], Summary())
        assert await store.journal.read("s") == [record("a")]


async def test_a_closed_store_has_let_go_of_its_leases(world: World) -> None:
    async with opened(world) as store:
        other = await world.open("other")
        lease = await owned(other)
        await other.close()
        assert await store.leases.acquire("s") == Lease("s", "me", lease.epoch + 1)


async def test_unfinished_are_sessions_with_entries_behind_the_cursor_or_a_turn_or_a_queue(world: World) -> None:
    async with opened(world) as store:
        summaries = {
            "behind": Summary(cursor=1),
            "done": Summary(cursor=2),
            "open": Summary(cursor=2, is_open=True),
            "waiting": Summary(cursor=2, is_waiting=True),
        }
        for session, summary in summaries.items():
            await store.inbox.put(session, say("a"))
            await store.inbox.put(session, say("b"))
            await store.journal.append(await owned(store, session), 0, [record("a")], summary)
        await store.inbox.put("new", say("a"))
        await store.journal.append(await owned(store, "without inbox"), 0, [], Summary(is_open=True))
        assert await store.inbox.unfinished() == ["behind", "new", "open", "waiting", "without inbox"]
        assert await store.inbox.unread() == ["behind", "new"]


async def test_nothing_is_unfinished_in_an_empty_store(world: World) -> None:
    async with opened(world) as store:
        assert await store.inbox.unfinished() == []


async def test_sessions_are_listed_last_changed_first(world: World) -> None:
    async with opened(world) as store:
        full = Summary(cursor=3, is_open=True, is_waiting=True, turns=2, title="Café", updated_at=5.5)
        await store.journal.append(await owned(store, "a"), 0, [record("a")], Summary(updated_at=1.0))
        await store.journal.append(await owned(store, "b"), 0, [record("a")], full)
        await store.journal.append(await owned(store, "c"), 0, [record("a")], Summary(updated_at=2.0))
        lines = [
            SessionLine("b", full),
            SessionLine("c", Summary(updated_at=2.0)),
            SessionLine("a", Summary(updated_at=1)),
        ]
        assert await store.journal.sessions() == lines


async def test_a_deleted_session_is_forgotten_and_its_owner_fenced(world: World) -> None:
    async with opened(world) as store:
        lease = await owned(store)
        await store.inbox.put("s", say("a"))
        await store.inbox.put("t", say("a"))
        await store.journal.append(lease, 0, [record("a")], Summary(is_open=True))
        assert await store.journal.delete("s")
        assert not await store.journal.delete("s")
        assert await store.inbox.after("s", 0) == []
        assert await store.journal.read("s") == []
        assert await store.journal.sessions() == []
        assert await store.inbox.unfinished() == ["t"]
        with pytest.raises(LeaseLost):
            await store.journal.append(lease, 0, [record("a")], Summary())
        assert (await owned(store)).epoch == lease.epoch + 1
        assert await store.inbox.put("s", say("a")) == Accepted(1, is_new=True)


async def test_a_thousand_interleaved_appends_keep_their_order(world: World) -> None:
    async with opened(world) as store:
        leases = [await owned(store, f"s{n}") for n in range(10)]

        async def write(lease: Lease) -> None:
            waiting = [
                asyncio.ensure_future(store.journal.append(lease, n, [record(str(n))], Summary())) for n in range(100)
            ]
            await asyncio.gather(*waiting)

        await asyncio.gather(*(write(lease) for lease in leases))
        for lease in leases:
            assert await store.journal.read(lease.session) == [record(str(n)) for n in range(100)]


async def test_a_cancelled_append_is_still_made(world: World) -> None:
    async with opened(world) as store:
        lease = await owned(store)
        cut = asyncio.ensure_future(store.journal.append(lease, 0, [record("a")], Summary()))
        await asyncio.sleep(0)
        cut.cancel()
        await store.journal.append(lease, 1, [record("b")], Summary())
        assert await store.journal.read("s") == [record("a"), record("b")]


@pytest.mark.parametrize(
    "text", ["zürich 🎙️ 漢字 \u2028", "a\x00b", "x" * 10_000_000, ""], ids=["unicode", "nul", "big", "empty"]
)
async def test_any_text_comes_back_as_it_was(world: World, text: str) -> None:
    async with opened(world) as store:
        name = text[:20]
        lease = await owned(store, name)
        await store.inbox.put(name, say(name, text))
        await store.journal.append(lease, 0, [record(name, text)], Summary(title=name))
        assert await store.inbox.after(name, 0) == [Entry(1, say(name, text))]
        assert await store.inbox.put(name, say(name)) == Accepted(1, is_new=False)
        assert await store.journal.read(name) == [record(name, text)]
        assert await store.journal.sessions() == [SessionLine(name, Summary(title=name))]


async def test_a_wake_reaches_the_others_and_not_its_sender(world: World) -> None:
    async with opened(world) as store:
        other, third = await world.open("other"), await world.open("third")
        await store.bus.wake("s")
        await other.bus.wake("t")
        assert {await next_wake(third.bus), await next_wake(third.bus)} == {"s", "t"}
        assert await next_wake(other.bus) == "s"
        assert await next_wake(store.bus) == "t"
        await other.close()
        await third.close()


async def test_the_wakes_end_when_the_store_is_closed(world: World) -> None:
    async with opened(world) as store:
        other = await world.open("other")
        listening = asyncio.ensure_future(next_wake(other.bus))
        await asyncio.sleep(0)
        await other.close()
        with pytest.raises(StopAsyncIteration):
            await listening
        await store.bus.wake("s")
