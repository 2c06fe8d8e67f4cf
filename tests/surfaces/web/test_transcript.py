"""The transcript of a running turn contains each reply once, whether it is in the history or still streaming."""

from hark.protocol.messages import AssistantMessage, Message, UserMessage
from hark.protocol.session import RunningTurn
from hark.surfaces.web.api.sessions import drop_repeated_reply

USER_MESSAGE: tuple[Message, str] = (UserMessage("1", "hello"), "s.t1")


def test_a_reply_in_the_history_is_not_repeated_in_the_running_turn() -> None:
    messages: list[tuple[Message, str]] = [USER_MESSAGE, (AssistantMessage("hi there"), "s.t1")]
    assert drop_repeated_reply(messages, RunningTurn("s.t1", "hi there")) == RunningTurn("s.t1", "")
    assert len(messages) == 2


def test_a_reply_with_unpublished_deltas_is_removed_from_the_history() -> None:
    messages: list[tuple[Message, str]] = [USER_MESSAGE, (AssistantMessage("hi there"), "s.t1")]
    assert drop_repeated_reply(messages, RunningTurn("s.t1", "hi ")) == RunningTurn("s.t1", "hi ")
    assert messages == [USER_MESSAGE]


def test_a_reply_from_another_turn_stays_in_the_history() -> None:
    messages: list[tuple[Message, str]] = [(AssistantMessage("hi there"), "s.t0"), USER_MESSAGE]
    assert drop_repeated_reply(messages, RunningTurn("s.t1", "hi ")) == RunningTurn("s.t1", "hi ")
    assert len(messages) == 2
