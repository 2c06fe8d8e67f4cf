"""Growing replies keep within a platform's limits; what can't wait never does."""

from time import monotonic

import pytest

from hark.protocol.chat import Address, Button, ChatError, ChatSurface, Outgoing
from hark.surfaces.chat.reply import count_message
from hark.timing.rate_limit import RateLimit
from tests.surfaces.slack.slack_fixture import DM, slacking
from tests.surfaces.telegram.telegram_fixture import telegram_bot

GROWING = (Button("⏹ Stop", "stop:t1"),)
GROUP = Address("telegram", "-1001")


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = monotonic()
        monkeypatch.setattr("hark.timing.rate_limit.monotonic", lambda: self.now)


def test_only_a_growing_reply_waits_for_the_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    limit = RateLimit(3, 0.5, reserve=1)
    for _ in range(4):
        count_message(Outgoing("done"), limit)
    with pytest.raises(ChatError) as soon:
        count_message(Outgoing("more", GROWING), limit)
    assert soon.value.retry_after is not None
    clock.now += soon.value.retry_after
    count_message(Outgoing("more", GROWING), limit)


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
