"""The terminal app as a person uses it: everything typed is heard, told, and never lost."""

import asyncio
from pathlib import Path

import pytest
from textual import events

import hark
from hark.protocol.commands import Command
from hark.protocol.messages import UserMessage
from hark.protocol.provider import ReasoningChunk
from hark.protocol.store import Accepted
from hark.providers.scripted import Hang
from hark.surfaces.terminal import actions
from hark.surfaces.terminal.environment import EarlyInput, TerminalEnvironment
from hark.surfaces.terminal.keys import Keys
from hark.surfaces.terminal.widgets import question
from tests.surfaces.terminal.terminal_fixture import Seat, call, seat


@pytest.fixture
def read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have questions count as read the moment that they are shown."""
    monkeypatch.setattr(question, "READ_SECONDS", 0.0)


@pytest.fixture
def twice_however_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a key that is pressed again count as pressed twice, however busy the machine is."""
    monkeypatch.setattr(actions, "DOUBLE_SECONDS", 60.0)
    monkeypatch.setattr(actions, "REWIND_SECONDS", 60.0)


async def asked(one: Seat) -> None:
    await one.until(lambda: one.app.questions.current and one.app.composer.asks_first)


async def test_a_message_is_answered_and_its_receipt_is_told(tmp_path: Path) -> None:
    async with seat(tmp_path, [["**Good** morning."]]) as one:
        await one.type("good morning")
        await one.press("enter")
        await one.until("done in")
        assert "› good morning" in one.log
        assert "turn 1" in one.log
        assert "Good morning." in one.log
        assert one.line == ""


async def test_a_message_interrupts_and_says_which_turn_and_how_fast(tmp_path: Path) -> None:
    hang = Hang()
    async with seat(tmp_path, [["par", hang], ["fine"]]) as one:
        await one.say("first")
        await hang.reached.wait()
        await one.say("second")
        await one.until("fine")
        await one.rest()
        assert hang.closed.is_set()
        await one.until("interrupted turn 1 in")
        await one.until("ms: turn 2")
        assert "par" in one.log


async def test_tab_queues_and_the_panel_changes_what_waits(tmp_path: Path) -> None:
    hang = Hang()
    async with seat(tmp_path, [[hang], ["b done"], ["a2 done"]]) as one:
        await one.say("go")
        await hang.reached.wait()
        for text in ("a", "b", "c"):
            await one.say(text, "tab")
        await one.until(lambda: [item.text for item in one.app.queue_panel.items] == ["a", "b", "c"])
        await one.until("queued #3")
        await one.press("f2", "down", "K")  # b up
        await one.until(lambda: [item.text for item in one.app.queue_panel.items] == ["b", "a", "c"])
        await one.press("down", "down", "d")  # c away
        await one.until(lambda: [item.text for item in one.app.queue_panel.items] == ["b", "a"])
        await one.until("withdrawn")
        await one.press("down", "e")  # a into the line
        await one.until(lambda: one.line == "a")
        await one.type("2")
        await one.press("enter")
        await one.until(lambda: [item.text for item in one.app.queue_panel.items] == ["b", "a2"])
        assert one.line == ""
        await one.press("f2", "home", "enter")  # b now
        await one.until("b done")
        await one.until("a2 done")
        await one.rest()
    said = [request.messages[-1].text for request in one.provider.requests]
    assert said == ["go", "b", "a2"]


async def test_an_edit_that_is_left_keeps_the_message_and_the_line(tmp_path: Path) -> None:
    hang = Hang()
    async with seat(tmp_path, [[hang]]) as one:
        await one.say("go")
        await hang.reached.wait()
        await one.say("queued one", "tab")
        await one.until(lambda: one.app.queue_panel.display)
        await one.type("half")
        await one.press("f2", "e")
        await one.until(lambda: one.line == "queued one")
        await one.type("!")
        await one.press("escape")
        await one.until(lambda: one.line == "half")
        assert [item.text for item in one.app.queue_panel.items] == ["queued one"]
        assert not hang.closed.is_set()


async def test_a_steer_says_into_which_step_it_went(tmp_path: Path) -> None:
    gate = asyncio.Event()
    waits = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        waits.set()
        await gate.wait()
        return "waited"

    async with seat(tmp_path, [[call("wait")], ["with tabs"]], tools=[wait]) as one:
        await one.say("go")
        await waits.wait()
        await one.say("use tabs", "ctrl+s")
        await one.until("steers turn 1")
        gate.set()
        await one.until("with tabs")
        await one.until("steered into turn 1, step 2")


async def test_esc_stops_holds_what_waits_and_the_next_message_releases_it(tmp_path: Path) -> None:
    hang = Hang()
    async with seat(tmp_path, [[hang], ["new done"], ["old done"]]) as one:
        await one.say("go")
        await hang.reached.wait()
        await one.say("later", "tab")
        await one.until("queued #1")
        await one.type("unsent")
        await one.press("escape")
        await one.until("stopped in")
        await one.until("1 waiting message is held")
        await one.until("held #1")
        assert one.line == "unsent"
        await one.press("enter")
        await one.until("old done")
        await one.rest()


async def test_after_stop_edit_gives_the_words_back(tmp_path: Path) -> None:
    hang = Hang()
    place = TerminalEnvironment(tmp_path, tmp_path, after_stop_edits=True)
    async with seat(tmp_path, [[hang]], place=place, delivery={"after_stop": "edit"}) as one:
        await one.say("go")
        await hang.reached.wait()
        await one.say("later", "tab")
        await one.until("queued #1")
        await one.type("mine")
        await one.press("escape")
        await one.until(lambda: one.line == "mine\nlater")


async def test_a_slash_command_shows_what_was_typed_and_what_came_of_it(tmp_path: Path) -> None:
    async with seat(tmp_path, []) as one:
        await one.say("/busy queue")
        await one.until("A message while a turn runs: queue.")
        await one.until(lambda: "sending" not in one.log)
        assert "› /busy queue" in one.log


async def test_a_message_that_is_sent_while_the_session_loads_is_shown_once_below_the_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()
    opened = hark.SessionHandle.opened

    async def slowly(session: hark.SessionHandle) -> None:
        await gate.wait()
        await opened(session)

    monkeypatch.setattr(hark.SessionHandle, "opened", slowly)
    place = TerminalEnvironment(tmp_path, tmp_path, take_over=lambda: EarlyInput(("early bird",), "and on"))
    async with seat(tmp_path, [["caught it"]], place=place) as one:
        assert one.line == "and on"
        assert "early bird" in one.log
        await one.until(lambda: one.provider.requests)
        gate.set()
        await one.until("caught it")
        await one.rest()
        assert one.log.count("early bird") == 1
        assert one.log.index("early bird") < one.log.index("caught it")


async def test_what_was_said_before_is_shown_when_a_session_is_resumed(tmp_path: Path) -> None:
    async with seat(tmp_path, [["# Title\n\nan *old* answer"]], store={"url": "sqlite"}) as one:
        await one.say("an old question")
        await one.until("done in")
    async with seat(tmp_path, [["new"]], store={"url": "sqlite"}) as one:
        await one.until("an old answer")
        assert "› an old question" in one.log


@pytest.mark.usefixtures("read_at_once")
async def test_an_approval_is_answered_by_one_key(tmp_path: Path) -> None:
    script = [[call("shell", command="touch made")], ["done it"]]
    async with seat(tmp_path, script, approvals={"mode": "ask"}) as one:
        await one.say("go")
        await asked(one)
        assert "[y] yes" in one.screen
        await one.press("y")
        await one.until("done it")
        assert "answered: yes" in one.log
    assert (tmp_path / "work" / "made").exists()


@pytest.mark.usefixtures("read_at_once")
@pytest.mark.parametrize("key", ["n", "4"])
async def test_an_approval_is_denied_by_one_key(tmp_path: Path, key: str) -> None:
    script = [[call("shell", command="touch made")], ["as you like"]]
    async with seat(tmp_path, script, approvals={"mode": "ask"}) as one:
        await one.say("go")
        await asked(one)
        await one.press(key)
        await one.until("as you like")
    assert not (tmp_path / "work" / "made").exists()


async def test_a_key_that_came_before_the_question_could_be_read_is_no_answer(tmp_path: Path) -> None:
    script = [[call("shell", command="touch made")], ["fine"]]
    async with seat(tmp_path, script, approvals={"mode": "ask"}) as one:
        await one.say("go")
        await asked(one)
        one.app.questions._shown_at += 3600
        await one.type("you")
        assert one.line == "you"
        await one.type(" wait")
        await one.press("enter")
        await one.until("fine")
        assert "The question was withdrawn" in one.log
    assert not (tmp_path / "work" / "made").exists()
    assert one.provider.requests[1].messages[-1].text == "you wait"


@pytest.mark.usefixtures("read_at_once")
async def test_a_key_with_text_in_the_line_is_text(tmp_path: Path) -> None:
    script = [[call("shell", command="touch made")]]
    async with seat(tmp_path, script, approvals={"mode": "ask"}) as one:
        await one.say("go")
        await one.type("x")
        await asked(one)
        await one.type("y")
        assert one.line == "xy"
        await one.press("escape")
        await one.until("The question was withdrawn")
        await one.until(lambda: not one.app.questions.display)
        assert one.line == "xy"
    assert not (tmp_path / "work" / "made").exists()


@pytest.mark.usefixtures("read_at_once")
async def test_a_question_is_answered_by_words(tmp_path: Path) -> None:
    script = [[call("ask", question="Which colour?", choices=["red", "blue"])], ["thanks"]]
    async with seat(tmp_path, script) as one:
        await one.say("go")
        await asked(one)
        await one.type("a warm green")
        await one.press("enter")
        await one.until("thanks")
        assert "answered: a warm green" in one.log
    assert one.provider.requests[1].messages[-1].text == "a warm green"


@pytest.mark.usefixtures("read_at_once")
async def test_a_late_answer_is_told_and_kept_until_enter_is_pressed_again(tmp_path: Path) -> None:
    script = [[call("ask", question="Which colour?")], ["heard"]]
    async with seat(tmp_path, script) as one:
        await one.say("go")
        await asked(one)
        await one.type("green")
        await one.press("escape")
        await one.until("stopped in")
        await one.press("enter")
        await one.until("no longer open")
        assert one.line == "green"
        assert len(one.provider.requests) == 1
        await one.press("enter")
        await one.until("heard")


async def test_a_message_and_a_question_that_cross_are_not_mixed_up(tmp_path: Path) -> None:
    hang = Hang()
    script = [["well", hang], [call("ask", question="Which?")], ["heard the message"]]
    async with seat(tmp_path, script) as one:
        await one.say("go")
        await hang.reached.wait()
        await one.say("ask me")
        await one.type("my own thing")  # begun before the question was there
        await asked(one)
        await one.press("enter")
        await one.until("heard the message")
    assert one.provider.requests[2].messages[-1].text == "my own thing"


@pytest.mark.usefixtures("twice_however_slowly")
async def test_ctrl_c_clears_then_stops_then_leaves(tmp_path: Path) -> None:
    hang = Hang()
    async with seat(tmp_path, [["x", hang]]) as one:
        await one.say("go")
        await hang.reached.wait()
        await one.type("typed")
        await one.press("ctrl+c")
        assert one.line == ""
        assert not hang.closed.is_set()
        await one.press("ctrl+c")
        await one.until("stopped in")
        await one.press("up")
        assert one.line == "typed"  # cleared is not lost
        await one.press("ctrl+c", "ctrl+c")
        await one.until("Once more leaves")
        assert one.app.is_running
        await one.press("ctrl+c")
        await one.until(lambda: not one.app.is_running)


async def test_keys_are_changeable(tmp_path: Path) -> None:
    hang = Hang()
    place = TerminalEnvironment(tmp_path, tmp_path, Keys(stop="f9", leave="f10"))
    async with seat(tmp_path, [[hang]], place=place) as one:
        await one.say("go")
        await hang.reached.wait()
        assert "F9 stops" in one.screen
        await one.press("escape")
        assert not hang.closed.is_set()
        await one.press("f9")
        await one.until("stopped in")


async def test_history_walks_both_ways_and_keeps_what_was_unsent(tmp_path: Path) -> None:
    async with seat(tmp_path, [["a"], ["b"]]) as one:
        for text in ("one", "two"):
            await one.say(text)
            await one.rest()
        await one.type("new")
        await one.press("up")
        assert one.line == "two"
        await one.press("up")
        assert one.line == "one"
        await one.press("down", "down")
        assert one.line == "new"


async def test_several_lines_are_typed_and_sent_as_one_message(tmp_path: Path) -> None:
    async with seat(tmp_path, [["ok"]]) as one:
        await one.type("one")
        await one.press("ctrl+j")
        await one.type("two\\")
        await one.press("enter")
        await one.type("three")
        await one.press("enter")
        await one.until("ok")
    assert one.provider.requests[0].messages[-1].text == "one\ntwo\nthree"


async def test_a_file_is_completed_and_arrows_choose(tmp_path: Path) -> None:
    async with seat(tmp_path, [["read"]]) as one:
        for name in ("alpha.txt", "alphabet.txt", "other.py"):
            (tmp_path / "work" / name).write_text("x")
        await one.type("look at @alp")
        await one.until(lambda: "alphabet.txt" in one.screen)
        await one.press("down", "tab")
        assert one.line == "look at @alphabet.txt "
        await one.press("enter")
        await one.until("read")


async def test_a_command_is_completed(tmp_path: Path) -> None:
    async with seat(tmp_path, []) as one:
        await one.type("/stat")
        await one.press("enter")
        assert one.line == "/status "
        await one.press("enter")
        await one.until("nothing runs")


async def test_a_picture_goes_along_by_its_path(tmp_path: Path) -> None:
    async with seat(tmp_path, [["a picture"]]) as one:
        (tmp_path / "work" / "my shot.png").write_bytes(b"\x89PNG")
        await one.say("see 'my shot.png' and none.png")
        await one.until("a picture")
        assert "with my shot.png" in one.log
    message = one.provider.requests[0].messages[-1]
    assert isinstance(message, UserMessage)
    assert [attachment.media_type for attachment in message.attachments] == ["image/png"]


@pytest.mark.usefixtures("twice_however_slowly")
async def test_esc_esc_goes_back_with_the_words_in_the_line(tmp_path: Path) -> None:
    async with seat(tmp_path, [["a"], ["b"], ["c"]]) as one:
        for text in ("one", "two"):
            await one.say(text)
            await one.rest()
        await one.press("escape", "escape")
        await one.until(lambda: len(one.app.screen_stack) == 2)
        await one.press("enter")
        await one.until("Back to before demo.t2.")
        await one.until(lambda: one.line == "two")
        assert "› two" not in one.log
        await one.type("!")
        await one.press("enter")
        await one.rest()
    texts = [message.text for message in one.provider.requests[2].messages if isinstance(message, UserMessage)]
    assert texts == ["one", "two!"]


async def test_rewind_takes_file_changes_back_when_asked(tmp_path: Path) -> None:
    script = [["hi"], [call("write", path="new.txt", content="x")], ["written"]]
    async with seat(tmp_path, script) as one:
        await one.say("hello")
        await one.rest()
        await one.say("write it")
        await one.until("written")
        await one.rest()
        assert (tmp_path / "work" / "new.txt").exists()
        await one.press("f4")
        await one.until(lambda: len(one.app.screen_stack) == 2)
        await one.press("f")
        await one.until("as before")
    assert not (tmp_path / "work" / "new.txt").exists()


async def test_children_are_a_tree_that_is_opened_and_stopped_one_by_one(tmp_path: Path) -> None:
    hangs = [Hang(), Hang()]
    delegated = [call("delegate", 1, goal="first task"), call("delegate", 2, goal="second task")]
    script = [delegated, ["child a", hangs[0]], ["child b", hangs[1]], ["both seen"]]
    async with seat(tmp_path, script) as one:
        await one.say("go")
        for hang in hangs:
            await hang.reached.wait()
        await one.press("f3")
        await one.until(lambda: len(one.app.screen_stack) == 2)
        assert "● call_1" in one.screen
        assert "● call_2" in one.screen
        await one.press("home", "enter")
        await one.until(lambda: one.app.session.id == "demo.c-call_1")
        await one.until(lambda: one.app.progress.turn)
        assert "child call_1 of demo" in one.screen
        await one.press("escape")
        await one.until(lambda: sum(hang.closed.is_set() for hang in hangs) == 1)
        await one.press("f3")
        await one.until(lambda: len(one.app.screen_stack) == 2)
        await one.press("end", "enter")
        await one.until(lambda: one.app.session.id == "demo")
        await one.press("f3")
        await one.until(lambda: len(one.app.screen_stack) == 2)
        await one.press("end", "s")
        await one.until("both seen")
        assert all(hang.closed.is_set() for hang in hangs)


async def test_sessions_are_left_and_found_again(tmp_path: Path) -> None:
    async with seat(tmp_path, [["in demo"], ["in other"]], store={"url": "sqlite"}) as one:
        await one.say("hello demo")
        await one.until("in demo")
        await one.say("/new other")
        await one.until(lambda: one.app.session.id == "other")
        await one.say("hello other")
        await one.until("in other")
        assert "in demo" not in one.log
        await one.say("/resume demo")
        await one.until("in demo")
        await one.say("/new not a name")
        await one.until("can't name a session")
        assert one.app.session.id == "demo"


async def test_copy_theme_and_quit(tmp_path: Path) -> None:
    async with seat(tmp_path, [["the answer"]]) as one:
        await one.say("go")
        await one.rest()
        await one.say("/copy")
        await one.until("10 characters")
        assert one.app.clipboard == "the answer"
        await one.say("/theme nord")
        await one.until("The theme is nord.")
        await one.say("/quit")
        await one.until(lambda: not one.app.is_running)


async def test_thinking_is_folded_until_it_is_opened(tmp_path: Path) -> None:
    async with seat(tmp_path, [[ReasoningChunk("deep "), ReasoningChunk("thoughts"), "said"]]) as one:
        await one.say("go")
        await one.rest()
        await one.until("thought, about 2 words")
        assert "deep thoughts" not in one.log
        await one.press("ctrl+o")
        await one.until("deep thoughts")


async def test_a_draft_is_kept_while_it_is_typed(tmp_path: Path) -> None:
    async with seat(tmp_path, []) as one:
        await one.type("not yet")
        one.app.save_draft()
        assert (tmp_path / "drafts" / "demo").read_text() == "not yet"
    async with seat(tmp_path, []) as one:
        assert one.line == "not yet"


async def test_a_wish_that_fails_is_told_and_the_app_goes_on(tmp_path: Path) -> None:
    async def fail() -> None:
        raise RuntimeError("nobody foresaw this")

    async with seat(tmp_path, [["still here"]]) as one:
        one.app.start(fail())
        await one.until("nobody foresaw this")
        await one.say("go")
        await one.until("still here")


async def test_an_event_that_can_not_be_shown_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with seat(tmp_path, [["first"], ["second"]]) as one:
        faults = [ValueError("odd")]
        take = one.app.log_view.take

        def failing(event: object) -> None:
            if faults:
                raise faults.pop()
            take(event)  # type: ignore[arg-type]

        monkeypatch.setattr(one.app.log_view, "take", failing)
        await one.say("go")
        await one.until("could not be shown")
        await one.until("first")


async def test_a_long_session_keeps_a_bounded_screen(tmp_path: Path) -> None:
    async with seat(tmp_path, [[f"line {number}\n\n" for number in range(9_000)]]) as one:
        await one.say("go")
        await one.until("done in")
        assert "line 8999" in one.log
        assert len(one.app.log_view._lines) <= 6_100
        assert len(list(one.app.screen.walk_children())) < 20


async def test_keys_that_follow_enter_at_once_belong_to_the_next_message(tmp_path: Path) -> None:
    async with seat(tmp_path, [["a"], ["b"], ["c"]], delivery={"default": "queue"}) as one:
        for letter in "one\rtwo\rthree":
            key = "enter" if letter == "\r" else letter
            one.app.post_message(events.Key(key, letter))
        await one.until(lambda: len(one.provider.requests) == 2)
        await one.rest()
        assert [request.messages[-1].text for request in one.provider.requests] == ["one", "two"]
        assert one.line == "three"


@pytest.mark.usefixtures("read_at_once")
async def test_an_answer_that_is_pasted_and_sent_at_once_is_an_answer(tmp_path: Path) -> None:
    async with seat(tmp_path, [[call("ask", question="Which?")], ["thanks"]]) as one:
        await one.say("go")
        await asked(one)
        one.app.post_message(events.Paste("that one"))
        one.app.post_message(events.Key("enter", "\r"))
        await one.until("answered: that one")
        await one.until("thanks")
        assert one.provider.requests[1].messages[-1].text == "that one"


async def test_keys_that_delete_and_move_keep_their_place_among_letters(tmp_path: Path) -> None:
    async with seat(tmp_path, []) as one:
        for key in ("x", "ctrl+u", "a", "b", "backspace", "d", "left", "c", "end", "e"):
            one.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await one.until(lambda: one.line == "acde")


@pytest.mark.parametrize("is_busy", [False, True])
async def test_esc_directly_after_enter_stops_a_message_that_is_still_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_busy: bool
) -> None:
    hang = Hang()
    async with seat(tmp_path, [[hang], ["next done"]] if is_busy else [["next done"]]) as one:
        if is_busy:
            await one.say("a long task")
            await hang.reached.wait()
            await one.until(lambda: one.app.progress.turn)
        gate = asyncio.Event()
        inbox = one.agent.bench.store.inbox
        put = inbox.put

        async def held(session: str, command: Command) -> Accepted:
            await gate.wait()
            return await put(session, command)

        monkeypatch.setattr(inbox, "put", held)
        await one.say("something else")
        await one.press("escape")
        if is_busy:
            await one.until("stopped in")
        gate.set()
        await one.until(lambda: one.log.count("stopped in") == 1 + is_busy)
        await one.rest()
        assert len(one.provider.requests) == is_busy
        await one.say("next")
        await one.until("next done")


async def test_a_typed_stop_word_stops_the_turn_and_answers_no_question(tmp_path: Path) -> None:
    hang = Hang()
    async with seat(tmp_path, [[hang]]) as one:
        await one.say("stop")
        await one.until("No turn is running.")
        await one.say("go")
        await hang.reached.wait()
        await one.say("Stop!")
        await one.until("stopped in")
        await one.rest()
        assert len(one.provider.requests) == 1
