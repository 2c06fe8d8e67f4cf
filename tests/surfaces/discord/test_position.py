"""How far Discord's events were dealt with, over restarts."""

from pathlib import Path

from hark.surfaces.discord.position import MOST_CHATS, ChatPosition, GatewayPosition, Position


def test_it_goes_on_before_the_first_event_that_is_open(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "position"
    position = Position(file)
    position.load("bot")
    position.begin("s1", "wss://there", 1)
    marks = [position.open(sequence) for sequence in (2, 3, 4)]
    position.reach(9)
    assert position.place == GatewayPosition("bot", "s1", "wss://there", 1)
    position.done(marks[1])
    position.done(marks[0])
    assert position.place.sequence == 3
    position.save()
    again = Position(file)
    again.load("bot")
    assert again.place == GatewayPosition("bot", "s1", "wss://there", 3)
    position.done(marks[2])
    assert position.place.sequence == 9


def test_what_was_open_is_not_dealt_with_when_it_is_loaded_again() -> None:
    position = Position(None)
    position.load("bot")
    position.begin("s1", "wss://there", 1)
    position.open(5)
    position.reach(7)
    position.load("bot")
    assert position.place.sequence == 4


def test_an_old_sessions_end_says_nothing_of_the_new_ones(tmp_path: Path) -> None:
    position = Position(None)
    position.load("bot")
    position.begin("s1", "wss://there", 1)
    old = position.open(5)
    position.begin("s2", "wss://there", 1)
    position.open(5)
    position.reach(8)
    position.done(old)
    assert position.place.sequence == 4


def test_another_bot_or_a_broken_file_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "position"
    position = Position(file)
    position.load("bot")
    position.begin("s1", "wss://there", 1)
    other = Position(file)
    other.load("other")
    assert other.place == GatewayPosition("other")
    file.write_text("{")
    broken = Position(file)
    broken.load("bot")
    assert broken.place == GatewayPosition("bot")


def test_while_chats_are_read_there_is_nothing_to_resume() -> None:
    position = Position(None)
    position.load("bot")
    position.begin("s1", "wss://there", 1)
    position.behind.add("1")
    assert not position.place.session
    position.behind.discard("1")
    assert position.place.session == "s1"


def test_only_the_last_chats_that_spoke_to_us_are_kept() -> None:
    position = Position(None)
    position.load("bot")
    position.hear("chatter", ChatPosition(1, "g"), is_ours=False)
    for chat in range(MOST_CHATS + 5):
        position.hear(str(chat), ChatPosition(10), is_ours=True)
    position.hear("100", ChatPosition(5), is_ours=False)
    heard = position.place.heard
    assert len(heard) == MOST_CHATS
    assert "chatter" not in heard
    assert "4" not in heard
    assert heard["100"] == ChatPosition(10)
