"""The terminal app in use: typed text is sent, its receipt is shown, and it is never lost."""

import asyncio
from pathlib import Path

import pytest
from textual import events

import hark
from hark.protocol.commands import Command
from hark.protocol.messages import UserMessage
from hark.protocol.provider import ReasoningChunk
from hark.protocol.store import PutResult
from hark.providers.scripted import Hang
from hark.surfaces.terminal import app as terminal_app
from hark.surfaces.terminal.early_input import EarlyInput
from hark.surfaces.terminal.environment import TerminalEnvironment
from hark.surfaces.terminal.keys import Keys
from hark.surfaces.terminal.widgets import question_panel
from tests.surfaces.terminal.terminal_fixture import TerminalFixture, call, open_terminal


@pytest.fixture
def no_reading_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the delay before a displayed question accepts an answer."""
    monkeypatch.setattr(question_panel, "MIN_READ_SECONDS", 0.0)


@pytest.fixture
def slow_double_press(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengthen the double-press interval so that double presses are recognized on a slow machine."""
    monkeypatch.setattr(terminal_app, "DOUBLE_PRESS_SECONDS", 60.0)
    monkeypatch.setattr(terminal_app, "REWIND_SECONDS", 60.0)


async def wait_for_question(terminal: TerminalFixture) -> None:
    await terminal.until(lambda: terminal.app.questions.current)


async def test_message_is_answered_and_its_receipt_is_shown(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["**Good** morning."]]) as terminal:
        await terminal.type("good morning")
        await terminal.press("enter")
        await terminal.until("done in")
        assert "› good morning" in terminal.log
        assert "turn 1" in terminal.log
        assert "Good morning." in terminal.log
        assert terminal.input_text == ""


async def test_a_key_whose_action_fails_shows_the_error_and_the_app_remains_usable(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["Good morning."]]) as terminal:

        def fail() -> None:
            raise ValueError("no such luck")

        terminal.app._key_actions["help"] = fail
        terminal.app.handle_action("help", 0.0)
        await terminal.until("Failed: no such luck")
        await terminal.send("good morning")
        await terminal.until("Good morning.")


async def test_interrupting_message_shows_the_interrupted_turn_and_its_stop_time(tmp_path: Path) -> None:
    hang = Hang()
    async with open_terminal(tmp_path, [["par", hang], ["fine"]]) as terminal:
        await terminal.send("first")
        await hang.reached.wait()
        await terminal.send("second")
        await terminal.until("fine")
        await terminal.wait_until_idle()
        assert hang.closed.is_set()
        await terminal.until("interrupted turn 1 in")
        await terminal.until("ms · turn 2")
        assert "par" in terminal.log


async def test_tab_queues_messages_and_the_queue_panel_can_change_them(tmp_path: Path) -> None:
    hang = Hang()
    async with open_terminal(tmp_path, [[hang], ["b done"], ["a2 done"]]) as terminal:
        await terminal.send("go")
        await hang.reached.wait()
        for text in ("a", "b", "c"):
            await terminal.send(text, "tab")
        await terminal.until(lambda: [item.text for item in terminal.app.queue_panel.items] == ["a", "b", "c"])
        await terminal.until("queued #3")
        await terminal.press("f2", "down", "K")  # moves b up
        await terminal.until(lambda: [item.text for item in terminal.app.queue_panel.items] == ["b", "a", "c"])
        await terminal.press("down", "down", "d")  # withdraws c
        await terminal.until(lambda: [item.text for item in terminal.app.queue_panel.items] == ["b", "a"])
        await terminal.until("withdrawn")
        await terminal.press("down", "e")  # edits a
        await terminal.until(lambda: terminal.input_text == "a")
        await terminal.type("2")
        await terminal.press("enter")
        await terminal.until(lambda: [item.text for item in terminal.app.queue_panel.items] == ["b", "a2"])
        assert terminal.input_text == ""
        await terminal.press("f2", "home", "enter")  # sends b now
        await terminal.until("b done")
        await terminal.until("a2 done")
        await terminal.wait_until_idle()
    prompts = [request.messages[-1].text for request in terminal.provider.requests]
    assert prompts == ["go", "b", "a2"]


async def test_cancelled_edit_keeps_the_queued_message_and_the_typed_text(tmp_path: Path) -> None:
    hang = Hang()
    async with open_terminal(tmp_path, [[hang]]) as terminal:
        await terminal.send("go")
        await hang.reached.wait()
        await terminal.send("queued text", "tab")
        await terminal.until(lambda: terminal.app.queue_panel.display)
        await terminal.type("half")
        await terminal.press("f2", "e")
        await terminal.until(lambda: terminal.input_text == "queued text")
        await terminal.type("!")
        await terminal.press("escape")
        await terminal.until(lambda: terminal.input_text == "half")
        assert [item.text for item in terminal.app.queue_panel.items] == ["queued text"]
        assert not hang.closed.is_set()


async def test_steering_receipt_names_the_turn_and_step(tmp_path: Path) -> None:
    gate = asyncio.Event()
    is_waiting = asyncio.Event()

    async def wait() -> str:
        """Wait until the gate opens."""
        is_waiting.set()
        await gate.wait()
        return "waited"

    async with open_terminal(tmp_path, [[call("wait")], ["with tabs"]], tools=[wait]) as terminal:
        await terminal.send("go")
        await is_waiting.wait()
        await terminal.send("use tabs", "ctrl+s")
        await terminal.until("steering turn 1")
        gate.set()
        await terminal.until("with tabs")
        await terminal.until("steered into turn 1, step 2")


async def test_esc_stops_the_turn_and_the_next_message_releases_the_held_queue(tmp_path: Path) -> None:
    hang = Hang()
    async with open_terminal(tmp_path, [[hang], ["new done"], ["old done"]]) as terminal:
        await terminal.send("go")
        await hang.reached.wait()
        await terminal.send("later", "tab")
        await terminal.until("queued #1")
        await terminal.type("unsent")
        await terminal.press("escape")
        await terminal.until("stopped in")
        await terminal.until("1 queued message is on hold. Your next message releases it; F2 edits.")
        await terminal.until("held #1")
        assert terminal.input_text == "unsent"
        await terminal.press("enter")
        await terminal.until("old done")
        await terminal.wait_until_idle()


async def test_queued_messages_return_to_the_input_line_after_a_stop_when_after_stop_is_edit(tmp_path: Path) -> None:
    hang = Hang()
    environment = TerminalEnvironment(tmp_path, tmp_path, after_stop_edits=True)
    async with open_terminal(tmp_path, [[hang]], environment=environment, delivery={"after_stop": "edit"}) as terminal:
        await terminal.send("go")
        await hang.reached.wait()
        await terminal.send("later", "tab")
        await terminal.until("queued #1")
        await terminal.type("mine")
        await terminal.press("escape")
        await terminal.until(lambda: terminal.input_text == "mine\nlater")


async def test_slash_command_shows_the_typed_command_and_its_result(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, []) as terminal:
        await terminal.send("/busy queue")
        await terminal.until("Messages during a turn: queue.")
        await terminal.until(lambda: "sending" not in terminal.log)
        assert "› /busy queue" in terminal.log


async def test_message_sent_while_the_session_loads_is_shown_once_below_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = asyncio.Event()
    wait_until_loaded = hark.SessionHandle.wait_until_loaded

    async def load_slowly(session: hark.SessionHandle) -> None:
        await gate.wait()
        await wait_until_loaded(session)

    monkeypatch.setattr(hark.SessionHandle, "wait_until_loaded", load_slowly)
    environment = TerminalEnvironment(
        tmp_path, tmp_path, finish_early_input=lambda: EarlyInput(("early bird",), "and on")
    )
    async with open_terminal(tmp_path, [["caught it"]], environment=environment) as terminal:
        assert terminal.input_text == "and on"
        assert "early bird" in terminal.log
        await terminal.until(lambda: terminal.provider.requests)
        gate.set()
        await terminal.until("caught it")
        await terminal.wait_until_idle()
        assert terminal.log.count("early bird") == 1
        assert terminal.log.index("early bird") < terminal.log.index("caught it")


async def test_resumed_session_shows_its_earlier_messages(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["# Title\n\nan *old* answer"]], store={"url": "sqlite"}) as terminal:
        await terminal.send("an old question")
        await terminal.until("done in")
    async with open_terminal(tmp_path, [["new"]], store={"url": "sqlite"}) as terminal:
        await terminal.until("an old answer")
        assert "› an old question" in terminal.log


@pytest.mark.usefixtures("no_reading_delay")
async def test_approval_is_given_with_a_letter_and_enter(tmp_path: Path) -> None:
    script = [[call("shell", command="touch made")], ["done it"]]
    async with open_terminal(tmp_path, script, approvals={"mode": "ask"}) as terminal:
        await terminal.send("go")
        await wait_for_question(terminal)
        assert "[y] yes" in terminal.screen
        await terminal.press("y")
        assert terminal.input_text == "y"  # nothing is answered without Enter
        await terminal.press("enter")
        await terminal.until("done it")
        assert "Answered: yes" in terminal.log
    assert (tmp_path / "work" / "made").exists()


@pytest.mark.usefixtures("no_reading_delay")
@pytest.mark.parametrize("key", ["n", "4"])
async def test_approval_is_denied_with_a_letter_or_number_and_enter(tmp_path: Path, key: str) -> None:
    script = [[call("shell", command="touch made")], ["as you like"]]
    async with open_terminal(tmp_path, script, approvals={"mode": "ask"}) as terminal:
        await terminal.send("go")
        await wait_for_question(terminal)
        await terminal.press(key, "enter")
        await terminal.until("as you like")
    assert not (tmp_path / "work" / "made").exists()


async def test_key_pressed_before_the_question_can_be_read_is_not_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(question_panel, "MIN_READ_SECONDS", 3600.0)
    script = [[call("shell", command="touch made")], ["fine"]]
    async with open_terminal(tmp_path, script, approvals={"mode": "ask"}) as terminal:
        await terminal.send("go")
        await wait_for_question(terminal)
        await terminal.type("you")
        assert terminal.input_text == "you"
        await terminal.type(" wait")
        await terminal.press("enter")
        await terminal.until("fine")
        assert "The question was withdrawn" in terminal.log
    assert not (tmp_path / "work" / "made").exists()
    assert terminal.provider.requests[1].messages[-1].text == "you wait"


@pytest.mark.usefixtures("no_reading_delay")
async def test_approval_key_is_typed_as_text_when_the_input_line_is_not_empty(tmp_path: Path) -> None:
    script = [[call("shell", command="touch made")]]
    async with open_terminal(tmp_path, script, approvals={"mode": "ask"}) as terminal:
        await terminal.send("go")
        await terminal.type("x")
        await wait_for_question(terminal)
        await terminal.type("y")
        assert terminal.input_text == "xy"
        await terminal.press("escape")
        await terminal.until("The question was withdrawn")
        await terminal.until(lambda: not terminal.app.questions.display)
        assert terminal.input_text == "xy"
    assert not (tmp_path / "work" / "made").exists()


@pytest.mark.usefixtures("no_reading_delay")
async def test_question_with_choices_is_answered_in_other_words_after_shift_tab(tmp_path: Path) -> None:
    script = [[call("ask", question="Which colour?", choices=["red", "blue"])], ["thanks"]]
    async with open_terminal(tmp_path, script) as terminal:
        await terminal.send("go")
        await wait_for_question(terminal)
        await terminal.press("shift+tab")
        await terminal.type("a warm green")
        await terminal.press("enter")
        await terminal.until("thanks")
        assert "Answered: a warm green" in terminal.log
    assert terminal.provider.requests[1].messages[-1].text == "a warm green"


@pytest.mark.usefixtures("no_reading_delay")
async def test_late_answer_is_reported_and_sent_as_a_message_when_enter_is_pressed_again(tmp_path: Path) -> None:
    script = [[call("ask", question="Which colour?")], ["heard"]]
    async with open_terminal(tmp_path, script) as terminal:
        await terminal.send("go")
        await wait_for_question(terminal)
        await terminal.type("green")
        await terminal.press("escape")
        await terminal.until("stopped in")
        await terminal.press("enter")
        await terminal.until("no longer open")
        assert terminal.input_text == "green"
        assert len(terminal.provider.requests) == 1
        await terminal.press("enter")
        await terminal.until("heard")


async def test_message_typed_before_a_question_appears_is_not_used_as_the_answer(tmp_path: Path) -> None:
    hang = Hang()
    script = [["well", hang], [call("ask", question="Which?")], ["heard the message"]]
    async with open_terminal(tmp_path, script) as terminal:
        await terminal.send("go")
        await hang.reached.wait()
        await terminal.send("ask me")
        await terminal.type("my own thing")  # typed before the question appears
        await wait_for_question(terminal)
        await terminal.press("enter")
        await terminal.until("heard the message")
    assert terminal.provider.requests[2].messages[-1].text == "my own thing"


@pytest.mark.usefixtures("slow_double_press")
async def test_ctrl_c_clears_the_line_then_stops_the_turn_then_quits(tmp_path: Path) -> None:
    hang = Hang()
    async with open_terminal(tmp_path, [["x", hang]]) as terminal:
        await terminal.send("go")
        await hang.reached.wait()
        await terminal.type("typed")
        await terminal.press("ctrl+c")
        assert terminal.input_text == ""
        assert not hang.closed.is_set()
        await terminal.press("ctrl+c")
        await terminal.until("stopped in")
        await terminal.press("up")
        assert terminal.input_text == "typed"  # the cleared text is in the history
        await terminal.press("ctrl+c", "ctrl+c")
        await terminal.until("Press Ctrl+C again to quit.")
        assert terminal.app.is_running
        await terminal.press("ctrl+c")
        await terminal.until(lambda: not terminal.app.is_running)


async def test_key_bindings_can_be_configured(tmp_path: Path) -> None:
    hang = Hang()
    environment = TerminalEnvironment(tmp_path, tmp_path, Keys(stop="f9", leave="f10"))
    async with open_terminal(tmp_path, [[hang]], environment=environment) as terminal:
        await terminal.send("go")
        await hang.reached.wait()
        assert "F9 stop" in terminal.screen
        await terminal.press("escape")
        assert not hang.closed.is_set()
        await terminal.press("f9")
        await terminal.until("stopped in")


async def test_input_history_can_be_browsed_in_both_directions_without_losing_the_draft(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["a"], ["b"]]) as terminal:
        for text in ("one", "two"):
            await terminal.send(text)
            await terminal.wait_until_idle()
        await terminal.type("new")
        await terminal.press("up")
        assert terminal.input_text == "two"
        await terminal.press("up")
        assert terminal.input_text == "one"
        await terminal.press("down", "down")
        assert terminal.input_text == "new"


async def test_multiline_text_is_sent_as_one_message(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["ok"]]) as terminal:
        await terminal.type("one")
        await terminal.press("ctrl+j")
        await terminal.type("two\\")
        await terminal.press("enter")
        await terminal.type("three")
        await terminal.press("enter")
        await terminal.until("ok")
    assert terminal.provider.requests[0].messages[-1].text == "one\ntwo\nthree"


async def test_file_name_is_completed_with_the_selected_entry(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["read"]]) as terminal:
        for name in ("alpha.txt", "alphabet.txt", "other.py"):
            (tmp_path / "work" / name).write_text("x")
        await terminal.type("look at @alp")
        await terminal.until(lambda: "alphabet.txt" in terminal.screen)
        await terminal.press("down", "tab")
        assert terminal.input_text == "look at @alphabet.txt "
        await terminal.press("enter")
        await terminal.until("read")


async def test_slash_command_is_completed(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, []) as terminal:
        await terminal.type("/stat")
        await terminal.press("enter")
        assert terminal.input_text == "/status "
        await terminal.press("enter")
        await terminal.until("No turn is running")


async def test_image_is_attached_when_its_path_is_in_the_message(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["a picture"]]) as terminal:
        (tmp_path / "work" / "my shot.png").write_bytes(b"\x89PNG")
        await terminal.send("see 'my shot.png' and none.png")
        await terminal.until("a picture")
        assert "Attached: my shot.png" in terminal.log
    message = terminal.provider.requests[0].messages[-1]
    assert isinstance(message, UserMessage)
    assert [attachment.media_type for attachment in message.attachments] == ["image/png"]


@pytest.mark.usefixtures("slow_double_press")
async def test_double_esc_rewinds_and_puts_the_message_text_in_the_input_line(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["a"], ["b"], ["c"]]) as terminal:
        for text in ("one", "two"):
            await terminal.send(text)
            await terminal.wait_until_idle()
        await terminal.press("escape", "escape")
        await terminal.until(lambda: len(terminal.app.screen_stack) == 2)
        await terminal.press("enter")
        await terminal.until("Rewound to before demo.t2.")
        await terminal.until(lambda: terminal.input_text == "two")
        assert "› two" not in terminal.log
        await terminal.type("!")
        await terminal.press("enter")
        await terminal.wait_until_idle()
    texts = [message.text for message in terminal.provider.requests[2].messages if isinstance(message, UserMessage)]
    assert texts == ["one", "two!"]


async def test_rewind_restores_files_when_requested(tmp_path: Path) -> None:
    script = [["hi"], [call("write", path="new.txt", content="x")], ["written"]]
    async with open_terminal(tmp_path, script) as terminal:
        await terminal.send("hello")
        await terminal.wait_until_idle()
        await terminal.send("write it")
        await terminal.until("written")
        await terminal.wait_until_idle()
        assert (tmp_path / "work" / "new.txt").exists()
        await terminal.press("f4")
        await terminal.until(lambda: len(terminal.app.screen_stack) == 2)
        await terminal.press("f")
        await terminal.until("restored")
    assert not (tmp_path / "work" / "new.txt").exists()


async def test_children_are_shown_as_a_tree_and_can_be_opened_and_stopped_separately(tmp_path: Path) -> None:
    hangs = [Hang(), Hang()]
    delegated = [call("delegate", 1, goal="first task"), call("delegate", 2, goal="second task")]
    script = [delegated, ["child a", hangs[0]], ["child b", hangs[1]], ["both seen"]]
    async with open_terminal(tmp_path, script) as terminal:
        await terminal.send("go")
        for hang in hangs:
            await hang.reached.wait()
        await terminal.press("f3")
        await terminal.until(lambda: len(terminal.app.screen_stack) == 2)
        assert "● call_1" in terminal.screen
        assert "● call_2" in terminal.screen
        await terminal.press("home", "enter")
        await terminal.until(lambda: terminal.app.session.id == "demo.c-call_1")
        await terminal.until(lambda: terminal.app.progress.turn)
        assert "child call_1 of demo" in terminal.screen
        await terminal.press("escape")
        await terminal.until(lambda: sum(hang.closed.is_set() for hang in hangs) == 1)
        await terminal.press("f3")
        await terminal.until(lambda: len(terminal.app.screen_stack) == 2)
        await terminal.press("end", "enter")
        await terminal.until(lambda: terminal.app.session.id == "demo")
        await terminal.press("f3")
        await terminal.until(lambda: len(terminal.app.screen_stack) == 2)
        await terminal.press("end", "s")
        await terminal.until("both seen")
        assert all(hang.closed.is_set() for hang in hangs)


async def test_sessions_can_be_switched_and_resumed(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["in demo"], ["in other"]], store={"url": "sqlite"}) as terminal:
        await terminal.send("hello demo")
        await terminal.until("in demo")
        await terminal.send("/new other")
        await terminal.until(lambda: terminal.app.session.id == "other")
        await terminal.send("hello other")
        await terminal.until("in other")
        assert "in demo" not in terminal.log
        await terminal.send("/resume demo")
        await terminal.until("in demo")
        await terminal.send("/new not a name")
        await terminal.until("not a valid session name")
        assert terminal.app.session.id == "demo"


async def test_copy_theme_and_quit_commands_take_effect(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["the answer"]]) as terminal:
        await terminal.send("go")
        await terminal.wait_until_idle()
        await terminal.send("/copy")
        await terminal.until("10 characters")
        assert terminal.app.clipboard == "the answer"
        await terminal.send("/theme nord")
        await terminal.until("Theme: nord.")
        await terminal.send("/quit")
        await terminal.until(lambda: not terminal.app.is_running)


async def test_thinking_is_collapsed_until_it_is_expanded(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [[ReasoningChunk("deep "), ReasoningChunk("thoughts"), "said"]]) as terminal:
        await terminal.send("go")
        await terminal.wait_until_idle()
        await terminal.until("Thought (about 2 words)")
        assert "deep thoughts" not in terminal.log
        await terminal.press("ctrl+o")
        await terminal.until("deep thoughts")


async def test_draft_is_stored_while_it_is_typed(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, []) as terminal:
        await terminal.type("not yet")
        terminal.app.save_draft()
        assert (tmp_path / "drafts" / "demo").read_text() == "not yet"
    async with open_terminal(tmp_path, []) as terminal:
        assert terminal.input_text == "not yet"


async def test_failed_action_is_reported_and_the_app_continues(tmp_path: Path) -> None:
    async def fail() -> None:
        raise RuntimeError("unexpected failure")

    async with open_terminal(tmp_path, [["still here"]]) as terminal:
        terminal.app.start_task(fail())
        await terminal.until("unexpected failure")
        await terminal.send("go")
        await terminal.until("still here")


async def test_event_that_cannot_be_displayed_does_not_affect_other_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_terminal(tmp_path, [["first"], ["second"]]) as terminal:
        faults = [ValueError("odd")]
        show_event = terminal.app.log_view.show_event

        def fail_once(event: object) -> None:
            if faults:
                raise faults.pop()
            show_event(event)  # type: ignore[arg-type]

        monkeypatch.setattr(terminal.app.log_view, "show_event", fail_once)
        await terminal.send("go")
        await terminal.until("could not be displayed")
        await terminal.until("first")


async def test_long_session_has_a_bounded_number_of_lines_and_widgets(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [[f"line {number}\n\n" for number in range(9_000)]]) as terminal:
        await terminal.send("go")
        await terminal.until("done in")
        assert "line 8999" in terminal.log
        assert len(terminal.app.log_view._lines) <= 6_100
        assert len(list(terminal.app.screen.walk_children())) < 20


async def test_keys_typed_right_after_enter_become_part_of_the_next_message(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["a"], ["b"], ["c"]], delivery={"default": "queue"}) as terminal:
        for letter in "one\rtwo\rthree":
            key = "enter" if letter == "\r" else letter
            terminal.app.post_message(events.Key(key, letter))
        await terminal.until(lambda: len(terminal.provider.requests) == 2)
        await terminal.wait_until_idle()
        assert [request.messages[-1].text for request in terminal.provider.requests] == ["one", "two"]
        assert terminal.input_text == "three"


@pytest.mark.usefixtures("no_reading_delay")
async def test_enter_right_after_a_paste_sends_the_pasted_answer(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [[call("ask", question="Which?")], ["thanks"]]) as terminal:
        await terminal.send("go")
        await wait_for_question(terminal)
        terminal.app.post_message(events.Paste("that option"))
        terminal.app.post_message(events.Key("enter", "\r"))
        await terminal.until("Answered: that option")
        await terminal.until("thanks")
        assert terminal.provider.requests[1].messages[-1].text == "that option"


async def test_editing_keys_take_effect_in_the_order_they_were_typed(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, []) as terminal:
        for key in ("x", "ctrl+u", "a", "b", "backspace", "d", "left", "c", "end", "e"):
            terminal.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await terminal.until(lambda: terminal.input_text == "acde")


@pytest.mark.parametrize("is_busy", [False, True])
async def test_esc_right_after_enter_stops_a_message_that_is_not_yet_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_busy: bool
) -> None:
    hang = Hang()
    async with open_terminal(tmp_path, [[hang], ["next done"]] if is_busy else [["next done"]]) as terminal:
        if is_busy:
            await terminal.send("a long task")
            await hang.reached.wait()
            await terminal.until(lambda: terminal.app.progress.turn)
        gate = asyncio.Event()
        inbox = terminal.agent.engine.store.inbox
        put = inbox.put

        async def put_later(session: str, command: Command) -> PutResult:
            await gate.wait()
            return await put(session, command)

        monkeypatch.setattr(inbox, "put", put_later)
        await terminal.send("something else")
        await terminal.press("escape")
        if is_busy:
            await terminal.until("stopped in")
        gate.set()
        await terminal.until(lambda: terminal.log.count("stopped in") == 1 + is_busy)
        await terminal.wait_until_idle()
        assert len(terminal.provider.requests) == is_busy
        await terminal.send("next")
        await terminal.until("next done")


async def test_typed_stop_word_stops_the_turn(tmp_path: Path) -> None:
    hang = Hang()
    async with open_terminal(tmp_path, [[hang]]) as terminal:
        await terminal.send("stop")
        await terminal.until("No turn is running.")
        await terminal.send("go")
        await hang.reached.wait()
        await terminal.send("Stop!")
        await terminal.until("stopped in")
        await terminal.wait_until_idle()
        assert len(terminal.provider.requests) == 1


async def test_esc_stops_only_the_open_side_question_and_a_second_esc_stops_the_turn(tmp_path: Path) -> None:
    work, aside = Hang(), Hang()
    async with open_terminal(tmp_path, [["working", work], [aside]]) as terminal:
        await terminal.send("go")
        await work.reached.wait()
        await terminal.send("/btw how far?")
        await aside.reached.wait()
        await terminal.press("escape")
        await terminal.until("The side question was stopped.")
        assert aside.closed.is_set()
        assert not work.closed.is_set()
        await terminal.press("escape")
        await terminal.until("stopped in")


async def test_side_answers_are_shown_in_separate_blocks(tmp_path: Path) -> None:
    async with open_terminal(tmp_path, [["answer one"], ["answer two"]]) as terminal:
        await terminal.send("/btw one?")
        await terminal.until("answer one")
        await terminal.send("/btw two?")
        await terminal.until("answer two")
        assert "answer one" in terminal.log


async def test_f5_continues_the_turn_that_the_footer_names(tmp_path: Path) -> None:
    hang = Hang()
    async with open_terminal(tmp_path, [["half", hang], ["served"], ["finished"]]) as terminal:
        await terminal.send("long work")
        await terminal.until("half")
        await terminal.send("a question")
        await terminal.until("served")
        await terminal.until(lambda: "F5 continue turn 1" in terminal.screen)
        await terminal.press("f5")
        await terminal.until("finished")
        await terminal.wait_until_idle()
        assert "F5 continue" not in terminal.screen
        assert "t3 continues t1." in terminal.log


async def test_new_session_names_the_work_that_continues_in_the_old_one(tmp_path: Path) -> None:
    hang = Hang()
    async with open_terminal(tmp_path, [["half", hang]]) as terminal:
        await terminal.send("long work")
        await terminal.until("half")
        await terminal.send("/new other")
        await terminal.until("Still running in demo: t1. /resume demo returns to it.")
        assert not hang.closed.is_set()
