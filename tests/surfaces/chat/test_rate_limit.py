"""Streaming replies stay within a platform's rate limits. Final edits and new messages are never delayed."""

from time import monotonic

import pytest

from hark.protocol.chat import Address, Button, ChatError, ChatSurface, OutgoingMessage
from hark.surfaces.chat.streaming_reply import count_message
from hark.timing.rate_limit import RateLimit
from tests.surfaces.slack.slack_fixture import DM, running_slack
from tests.surfaces.telegram.telegram_fixture import running_bot

STOP_BUTTON = (Button("⏹ Stop", "stop:t1"),)
GROUP = Address("telegram", "-1001")


class FakeClock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = monotonic()
        monkeypatch.setattr("hark.timing.rate_limit.monotonic", lambda: self.now)


def test_only_a_streaming_reply_waits_for_the_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)
    limit = RateLimit(3, 0.5, reserve=1)
    for _ in range(4):
        count_message(OutgoingMessage("done"), limit)
    with pytest.raises(ChatError) as caught:
        count_message(OutgoingMessage("more", STOP_BUTTON), limit)
    assert caught.value.retry_after is not None
    clock.now += caught.value.retry_after
    count_message(OutgoingMessage("more", STOP_BUTTON), limit)


async def try_edit(surface: ChatSurface, address: Address, message_id: str, text: str) -> None:
    """Edit like the chat core: skip a rate-limited edit, because the next edit shows the newest text."""
    try:
        await surface.edit(address, message_id, OutgoingMessage(text, STOP_BUTTON))
    except ChatError as error:
        if error.retry_after is None:
            raise


async def test_a_streaming_reply_in_a_telegram_group_is_edited_at_most_twenty_times_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_bot() as bot:
        clock = FakeClock(monkeypatch)
        message_id = await bot.send("0", *STOP_BUTTON, address=GROUP)
        for second in range(60):
            clock.now += 1
            await try_edit(bot.surface, GROUP, message_id, f"{second}")
        await bot.surface.edit(GROUP, message_id, OutgoingMessage("whole"))
        message = bot.server.posted[0]
    assert 15 <= message.edits <= 19  # plus the message itself
    assert (message.text, message.buttons) == ("whole", [])


async def test_all_streaming_replies_in_slack_are_edited_at_most_fifty_times_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_slack() as (slack, surface, _):
        clock = FakeClock(monkeypatch)
        message_ids = [await surface.send(DM, OutgoingMessage("0", STOP_BUTTON)) for _ in range(3)]
        for second in range(60):
            clock.now += 1
            for message_id in message_ids:
                await try_edit(surface, DM, message_id, f"{second}")
        for message_id in message_ids:
            await surface.edit(DM, message_id, OutgoingMessage("whole"))
        edits = [method for method, _ in slack.calls if method == "chat.update"]
        assert slack.bot_texts() == ["whole"] * 3
    assert 40 <= len(edits) <= 50
