"""Growing replies keep within a platform's limits; what can't wait never does."""

from time import monotonic

import pytest

from hark.protocol.chat import Address, Button, ChatError, ChatSurface, Outgoing
from hark.surfaces.chat.rate_limit import RateLimit, take_place
from tests.surfaces.slack.slack_fixture import DM, slacking
from tests.surfaces.telegram.telegram_fixture import telegram_bot

GROWING = (Button("⏹ Stop", "stop:t1"),)
GROUP = Address("telegram", "-1001")


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = monotonic()
        monkeypatch.setattr("hark.surfaces.chat.rate_limit.monotonic", lambda: self.now)


def test_what_can_wait_waits_and_leaves_places_for_what_can_t(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    pace = RateLimit(3, 0.5, kept=1)
    done = 0
    for _ in range(60):
        if pace.wait() == 0:
            pace.count()
            done += 1
        clock.now += 1
    assert done == 2 + 30 - 1  # two at once, then one in two seconds
    for _ in range(3):
        take_place(Outgoing("done"), pace)
    with pytest.raises(ChatError) as soon:
        take_place(Outgoing("more", GROWING), pace)
    assert soon.value.retry_after is not None
    clock.now += soon.value.retry_after
    take_place(Outgoing("more", GROWING), pace)


async def grow(surface: ChatSurface, address: Address, message: str, text: str) -> None:
    """Edit as the core does: what has no place now is shown with the next look."""
    try:
        await surface.edit(address, message, Outgoing(text, GROWING))
    except ChatError as error:
        if error.retry_after is None:
            raise


async def test_in_a_telegram_group_a_growing_reply_is_edited_twenty_times_a_minute_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with telegram_bot() as bot:
        clock = Clock(monkeypatch)
        number = await bot.send("0", *GROWING, address=GROUP)
        for second in range(60):
            clock.now += 1
            await grow(bot.surface, GROUP, number, f"{second}")
        await bot.surface.edit(GROUP, number, Outgoing("whole"))
        one = bot.server.posted[0]
    assert 15 <= one.edits <= 19  # and the message itself
    assert (one.text, one.buttons) == ("whole", [])


async def test_in_slack_all_growing_replies_together_are_edited_fifty_times_a_minute_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with slacking() as (slack, surface, _):
        clock = Clock(monkeypatch)
        names = [await surface.send(DM, Outgoing("0", GROWING)) for _ in range(3)]
        for second in range(60):
            clock.now += 1
            for name in names:
                await grow(surface, DM, name, f"{second}")
        for name in names:
            await surface.edit(DM, name, Outgoing("whole"))
        edits = [method for method, _ in slack.calls if method == "chat.update"]
        assert slack.shown() == ["whole"] * 3
    assert 40 <= len(edits) <= 50
