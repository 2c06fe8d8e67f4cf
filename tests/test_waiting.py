import asyncio

import pytest

from tests.waiting import until


async def test_until_returns_the_first_true_value() -> None:
    values = iter([None, "", "here"])
    assert await until(lambda: next(values)) == "here"


async def test_until_awaits_an_awaitable_condition() -> None:
    values = iter([0, 3])

    async def number() -> int:
        return next(values)

    assert await until(number) == 3


async def test_until_checks_again_when_its_event_is_set() -> None:
    changed, seen = asyncio.Event(), [1]
    waiting = asyncio.create_task(until(lambda: len(seen) == 2, changed=changed))
    await asyncio.sleep(0)
    seen.append(2)
    changed.set()
    assert await waiting is True


async def test_until_checks_again_when_its_condition_variable_is_notified() -> None:
    changed, seen = asyncio.Condition(), [1]
    waiting = asyncio.create_task(until(lambda: len(seen) == 2, changed=changed))
    await asyncio.sleep(0)
    async with changed:
        seen.append(2)
        changed.notify_all()
    assert await waiting is True


async def test_until_fails_with_the_condition_and_the_last_state() -> None:
    texts = ["one"]
    with pytest.raises(AssertionError, match=r"(?s)not true within 0.01 s: .*len\(texts\) == 2.*last state: \['one'\]"):
        await until(lambda: len(texts) == 2, seconds=0.01, shows=lambda: texts)


async def test_until_propagates_a_timeout_raised_by_its_condition() -> None:
    def condition() -> bool:
        raise TimeoutError("of the condition")

    with pytest.raises(TimeoutError, match="of the condition"):
        await until(condition)
