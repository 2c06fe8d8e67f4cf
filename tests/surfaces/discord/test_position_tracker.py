"""The position in Discord's event stream is tracked across restarts."""

from pathlib import Path

from hark.surfaces.discord.position_tracker import MAX_CHATS, ChatPosition, GatewayPosition, PositionTracker


def read_damaged_files(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.glob("*.damaged")]


async def test_the_resume_position_is_before_the_first_open_event(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "position"
    position = PositionTracker(file)
    position.load("bot")
    position.begin_session("s1", "wss://there", 1)
    open_events = [position.open_event(sequence) for sequence in (2, 3, 4)]
    position.advance(9)
    assert position.resume_position == GatewayPosition("bot", "s1", "wss://there", 1)
    await position.close_event(open_events[1])
    await position.close_event(open_events[0])
    assert position.resume_position.sequence == 3
    await position.save()
    reloaded = PositionTracker(file)
    reloaded.load("bot")
    assert reloaded.resume_position == GatewayPosition("bot", "s1", "wss://there", 3)
    await position.close_event(open_events[2])
    assert position.resume_position.sequence == 9


def test_open_events_count_as_unprocessed_after_a_reload() -> None:
    position = PositionTracker(None)
    position.load("bot")
    position.begin_session("s1", "wss://there", 1)
    position.open_event(5)
    position.advance(7)
    position.load("bot")
    assert position.resume_position.sequence == 4


async def test_closing_an_event_from_an_old_session_does_not_affect_the_new_session(tmp_path: Path) -> None:
    position = PositionTracker(None)
    position.load("bot")
    position.begin_session("s1", "wss://there", 1)
    old_event = position.open_event(5)
    position.begin_session("s2", "wss://there", 1)
    position.open_event(5)
    position.advance(8)
    await position.close_event(old_event)
    assert position.resume_position.sequence == 4


async def test_a_changed_bot_account_or_a_broken_file_starts_without_a_session(tmp_path: Path) -> None:
    file = tmp_path / "position"
    position = PositionTracker(file)
    position.load("bot")
    position.begin_session("s1", "wss://there", 1)
    await position.save()
    other = PositionTracker(file)
    other.load("other")
    assert other.resume_position == GatewayPosition("other")
    file.write_text("{")
    broken = PositionTracker(file)
    broken.load("bot")
    assert broken.resume_position == GatewayPosition("bot")
    assert read_damaged_files(tmp_path) == ["{"]


def test_the_session_is_not_resumable_until_all_chats_are_caught_up() -> None:
    position = PositionTracker(None)
    position.load("bot")
    position.begin_session("s1", "wss://there", 1)
    position.chats_to_catch_up.add("1")
    assert not position.resume_position.session
    position.chats_to_catch_up.discard("1")
    assert position.resume_position.session == "s1"


def test_only_the_latest_chats_that_addressed_the_bot_are_tracked() -> None:
    position = PositionTracker(None)
    position.load("bot")
    position.record_message("chatter", ChatPosition(1, "g"), is_addressed=False)
    for chat in range(MAX_CHATS + 5):
        position.record_message(str(chat), ChatPosition(10), is_addressed=True)
    position.record_message("100", ChatPosition(5), is_addressed=False)
    heard = position.resume_position.heard
    assert len(heard) == MAX_CHATS
    assert "chatter" not in heard
    assert "4" not in heard
    assert heard["100"] == ChatPosition(10)
