"""Telegram, outwards: marked up, within its limits, and honest about what went wrong."""

import asyncio
import logging
import traceback
from pathlib import Path

import anyio
import pytest

import hark
from hark.app.pairing import Pairing
from hark.cli.serve.chat_surfaces import house_of
from hark.protocol.chat import Address, Button, ChatError, ChatGone, Outgoing
from hark.providers.scripted import Hang, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.people import People
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.split_text import pieces
from hark.surfaces.telegram.markup import as_html
from hark.surfaces.telegram.platform import TelegramSettings
from hark.surfaces.telegram.surface import Telegram
from tests.fakes.telegram_markup import shown
from tests.fakes.telegram_payloads import GROUP, TOKEN, Trouble
from tests.fakes.telegram_server import telegram_server
from tests.surfaces.telegram.telegram_fixture import HOME, telegram_bot

FRIENDS = Address("telegram", "-1001")
MARKDOWN = """# Plan **B**
Use `a < b && c` and *this*, **that _too_**, ~~not~~ <script>alert("x")</script> & [docs](https://e.org/?a=1&b=2).
1. first
   - nested
2. second

> quoted
> > deeper

| n | what |
|---|------|
| 1 | **one** |

```python
if x < 1 and y > 2:
    print("**not bold** & fine")
```
[local](/etc/passwd) [bad](javascript:alert(1)) ![cat](https://e.org/cat.png)"""


async def test_markdown_is_shown_and_nothing_of_it_is_taken_for_markup() -> None:
    async with telegram_bot() as bot:
        await bot.send(MARKDOWN)
    [one] = bot.server.posted
    assert one.html.startswith(
        "<b>Plan B</b>\nUse <code>a &lt; b &amp;&amp; c</code> and <i>this</i>, <b>that <i>too</i></b>"
    )
    assert '<script>alert("x")</script> & docs' in one.text
    assert 'if x < 1 and y > 2:\n    print("**not bold** & fine")' in one.text
    assert '<pre><code class="language-python">' in one.html
    assert "1. first\n   • nested\n2. second" in one.text
    assert one.html.count("<blockquote>") == 1
    assert "n │ what\n──┼─────\n1 │ one" in one.text
    assert "local (/etc/passwd)" in one.text
    assert "javascript" not in one.html.replace("[bad](javascript:alert(1))", "")


async def test_any_beginning_of_a_text_is_markup_that_telegram_accepts() -> None:
    for length in range(1, len(MARKDOWN)):
        assert shown(as_html(MARKDOWN[:length] + " ▌")).strip()  # raises CantParse for what the servers refuse


@pytest.mark.parametrize("why", ["can't parse entities: Unsupported start tag", "ENTITY_BOUNDS_INVALID"])
async def test_markup_that_is_refused_is_sent_as_plain_text(why: str) -> None:
    async with telegram_bot() as bot:
        bot.server.refuses_markup = f"Bad Request: {why}"
        number = await bot.send("**bold** & <b>")
        assert bot.server.texts == ["**bold** & <b>"]
        await bot.surface.edit(HOME, number, Outgoing("**bolder**"))
    assert bot.server.texts == ["**bolder**"]


async def test_a_long_text_goes_in_pieces_that_are_taken() -> None:
    code = "```python\n" + "print('<&>')  # \U0001f600\n" * 500 + "```"
    table = "| a | b |\n|---|---|\n" + f"| x | {'y' * 500} |\n| z | |\n" * 5
    async with telegram_bot() as bot:
        parts = pieces(f"{'words & more ' * 700}\n\n{code}\n\n{table}", Telegram.limits.characters)
        for part in parts:
            await bot.send(part)
        await bot.send("\U0001f600" * 3000)
        await bot.send(" \n ")
        await bot.send("half \ud83d of it")
    assert len(bot.server.posted) == len(parts) + 3
    assert "".join(bot.server.texts).count("print('<&>')") == 500
    assert bot.server.texts[-3].endswith("(cut: too long for Telegram)")


async def test_an_edit_changes_text_and_buttons_and_the_same_again_is_no_error() -> None:
    async with telegram_bot() as bot:
        number = await bot.send("one", Button("⏹ Stop", "stop:t1"))
        assert bot.server.posted[0].buttons == [{"text": "⏹ Stop", "callback_data": "stop:t1"}]
        await bot.surface.edit(HOME, number, Outgoing("two"))
        await bot.surface.edit(HOME, number, Outgoing("two"))
        with pytest.raises(ChatGone, match="not found"):
            await bot.surface.edit(HOME, "99999", Outgoing("two"))
    [one] = bot.server.posted
    assert (one.text, one.buttons, one.edits) == ("two", [], 1)


async def test_a_reply_typing_and_signs() -> None:
    async with telegram_bot() as bot:
        number = await bot.server.write("hi")
        await bot.send("ho", reply_to=str(number))
        await bot.surface.typing(FRIENDS)
        for sign in ("👀", "⚡", "↪", "⏳", "⏸", "🗑", ""):
            await bot.surface.react(HOME, str(number), sign)
        with pytest.raises(ChatError, match="REACTION_INVALID"):
            await bot.surface.react(HOME, str(number), "🧨")
    assert bot.server.posted[0].reply_to == number
    assert bot.server.typed == [(-1001, "typing")]
    assert [sign for _, sign in bot.server.reactions] == ["👀", "⚡", "✍", "👌", "😴", "🕊", ""]


async def test_a_spoken_reply_is_sent_beside_its_words() -> None:
    async with telegram_bot() as bot:
        await bot.send("hello", voice=b"OggS...")
        await bot.send("", voice=b"RIFF...")
        bot.server.fail("sendvoice", Trouble(status=500))
        assert await bot.send("words stay", voice=b"OggS...") == str(bot.server.posted[-1].id)
    assert bot.server.texts == ["hello", "words stay"]
    assert bot.server.spoken == [("sendvoice", b"OggS..."), ("senddocument", b"RIFF...")]


async def test_being_asked_to_wait_is_told_and_holds_no_other_chat() -> None:
    async with telegram_bot() as bot:
        bot.server.fail("sendmessage", Trouble(retry_after=17, chat=1))
        with pytest.raises(ChatError) as caught:
            await bot.send("one")
        await bot.send("other", address=FRIENDS)
    assert caught.value.retry_after == 17
    assert bot.server.texts == ["other"]


async def test_chats_that_are_closed_to_us_are_gone() -> None:
    async with telegram_bot() as bot:
        bot.server.blocked.add(1)
        for address in (HOME, Address("telegram", "5"), Address("telegram", "-1001", "99"), Address("telegram", "x")):
            with pytest.raises(ChatGone):
                await bot.send("hello", address=address)


async def test_a_group_that_moved_is_found() -> None:
    async with telegram_bot() as bot:
        bot.server.moved[-5] = -1001
        old = Address("telegram", "-5")
        number = await bot.send("one", address=old)
        await bot.surface.edit(old, number, Outgoing("two"))
    assert [(one.chat, one.text) for one in bot.server.posted] == [(GROUP["id"], "two")]


async def test_a_lost_answer_to_a_sending_is_no_refusal_and_to_an_edit_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with telegram_bot() as bot:
        bot.server.fail("sendmessage", Trouble(drops=True, is_done=True), Trouble(html=True), Trouble(status=500))
        for _ in range(3):
            with pytest.raises(ConnectionError) as caught:
                await bot.send("one")
            assert TOKEN not in "".join(traceback.format_exception(caught.value))
        number = await bot.send("two")
        bot.server.fail("editmessagetext", Trouble(drops=True))
        with pytest.raises(ChatError):
            await bot.surface.edit(HOME, number, Outgoing("three"))
    assert bot.server.texts == ["one", "two"]
    assert TOKEN not in caplog.text


async def test_sending_before_and_after_the_run_is_refused_for_a_moment() -> None:
    surface = Telegram(TelegramSettings(token=TOKEN))
    with pytest.raises(ChatError) as caught:
        await surface.send(HOME, Outgoing("early"))
    assert caught.value.retry_after == 1.0


async def test_a_message_is_answered_by_a_real_agent_and_the_stop_button_stops_it(tmp_path: Path) -> None:
    hang = Hang()
    provider = ScriptedProvider([["**half** of it ", hang], ["next"]])
    settings = TelegramSettings(token=TOKEN, allow=("1",))

    async with (
        telegram_server() as server,
        hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent,
    ):
        surface = Telegram(TelegramSettings(token=TOKEN, api_base=server.address, allow=("1",)))
        ledger = SqliteChatLedger(tmp_path / "gateway.db")
        people = People("telegram", settings.allow, Pairing(tmp_path / "pairing.json"), settings.per_minute)
        house = house_of(agent, ledger)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Platform(surface, settings, people, house).run)
            message = await server.write("go")
            await server.until(lambda: any(one.buttons for one in server.posted))
            query = await server.press("Stop")
            await server.until(lambda: server.texts == ["half of it\n\n⏹ stopped"])
            await server.until(lambda: (query, "") in server.answered)
            await server.write("and now?")
            await server.until(lambda: server.texts == ["half of it\n\n⏹ stopped", "next"])
            await server.until(lambda: (message, "👀") in server.reactions)
            tasks.cancel_scope.cancel()
        await ledger.close()
    assert hang.closed.is_set()
    assert server.posted[0].html.startswith("<b>half</b> of it")
    assert not any(one.buttons for one in server.posted)
    assert all("sending" not in task.get_name() for task in asyncio.all_tasks())
