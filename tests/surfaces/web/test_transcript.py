"""A transcript of a running turn has each reply once, wherever the reply is on its way."""

from hark.protocol.messages import AssistantMessage, Message, UserMessage
from hark.protocol.session import RunningTurn
from hark.surfaces.web.api.sessions import drop_repeated_reply

ASKED: tuple[Message, str] = (UserMessage("1", "hello"), "s.t1")


def test_a_reply_that_the_history_has_is_not_repeated_by_the_running_turn() -> None:
    said: list[tuple[Message, str]] = [ASKED, (AssistantMessage("hi there"), "s.t1")]
    assert drop_repeated_reply(said, RunningTurn("s.t1", "hi there")) == RunningTurn("s.t1", "")
    assert len(said) == 2


def test_a_reply_whose_last_pieces_are_still_to_come_as_events_is_left_to_the_running_turn() -> None:
    said: list[tuple[Message, str]] = [ASKED, (AssistantMessage("hi there"), "s.t1")]
    assert drop_repeated_reply(said, RunningTurn("s.t1", "hi ")) == RunningTurn("s.t1", "hi ")
    assert said == [ASKED]


def test_a_reply_of_another_step_or_turn_stays() -> None:
    said: list[tuple[Message, str]] = [(AssistantMessage("hi there"), "s.t0"), ASKED]
    assert drop_repeated_reply(said, RunningTurn("s.t1", "hi ")) == RunningTurn("s.t1", "hi ")
    assert len(said) == 2
