"""Messages to Telegram are sent with markup, within Telegram's limits, and with correct errors."""

import asyncio
import logging
import traceback
from pathlib import Path

import anyio
import pytest

import hark
from hark.app.pairing import PairingFile
from hark.cli.serve.chat_surfaces import chat_services
from hark.protocol.chat import Address, Button, ChatError, ChatGone, OutgoingMessage
from hark.providers.scripted import Hang, ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from hark.surfaces.chat.platform import Platform
from hark.surfaces.chat.sender_policy import SenderPolicy
from hark.surfaces.chat.split_text import split_text
from hark.surfaces.telegram.markup import to_html
from hark.surfaces.telegram.platform import TelegramSettings
from hark.surfaces.telegram.surface import TelegramSurface
from tests.fakes.telegram_markup import visible_text
from tests.fakes.telegram_payloads import GROUP, TOKEN, TelegramFailure
from tests.fakes.telegram_server import telegram_server
from tests.surfaces.telegram.telegram_fixture import HOME, running_bot

GROUP_ADDRESS = Address("telegram", "-1001")
MARKDOWN = """# Plan **B**
Use `a < b && c` and *this*, **that _too_**, ~~not~~ <script>alert("x")</script> & [docs](https://e.org/?a=1&b=2).
1. first
   - nested
2. second

> quoted
> > deeper

| n | name |
|---|------|
| 1 | **one** |

```python
if x < 1 and y > 2:
    print("**not bold** & fine")
```
[local](/etc/passwd) [bad](javascript:alert(1)) ![cat](https://e.org/cat.png)"""


async def test_markdown_is_rendered_and_other_text_is_escaped() -> None:
    async with running_bot() as bot:
        await bot.send(MARKDOWN)
    [sent] = bot.server.posted
    assert sent.html.startswith(
        "<b>Plan B</b>\nUse <code>a &lt; b &amp;&amp; c</code> and <i>this</i>, <b>that <i>too</i></b>"
    )
    assert '<script>alert("x")</script> & docs' in sent.text
    assert 'if x < 1 and y > 2:\n    print("**not bold** & fine")' in sent.text
    assert '<pre><code class="language-python">' in sent.html
    assert "1. first\n   • nested\n2. second" in sent.text
    assert sent.html.count("<blockquote>") == 1
    assert "n │ name\n──┼─────\n1 │ one" in sent.text
    assert "local (/etc/passwd)" in sent.text
    assert "javascript" not in sent.html.replace("[bad](javascript:alert(1))", "")


async def test_every_prefix_of_a_text_renders_as_markup_that_telegram_accepts() -> None:
    for length in range(1, len(MARKDOWN)):
        # raises CantParse for markup that the servers refuse
        assert visible_text(to_html(MARKDOWN[:length] + " ▌")).strip()


@pytest.mark.parametrize("reason", ["can't parse entities: Unsupported start tag", "ENTITY_BOUNDS_INVALID"])
async def test_refused_markup_is_sent_as_plain_text(reason: str) -> None:
    async with running_bot() as bot:
        bot.server.refuses_markup = f"Bad Request: {reason}"
        number = await bot.send("**bold** & <b>")
        assert bot.server.texts == ["**bold** & <b>"]
        await bot.surface.edit(HOME, number, OutgoingMessage("**bolder**"))
    assert bot.server.texts == ["**bolder**"]


async def test_a_long_text_is_sent_in_parts_that_telegram_accepts() -> None:
    code = "```python\n" + "print('<&>')  # \U0001f600\n" * 500 + "```"
    table = "| a | b |\n|---|---|\n" + f"| x | {'y' * 500} |\n| z | |\n" * 5
    async with running_bot() as bot:
        parts = split_text(f"{'words & more ' * 700}\n\n{code}\n\n{table}", TelegramSurface.limits.characters)
        for part in parts:
            await bot.send(part)
        await bot.send("\U0001f600" * 3000)
        await bot.send(" \n ")
    assert len(bot.server.posted) == len(parts) + 2
    assert "".join(bot.server.texts).count("print('<&>')") == 500
    assert bot.server.texts[-2].endswith("(truncated: too long for Telegram)")


async def test_an_edit_changes_text_and_buttons_and_an_identical_edit_raises_no_error() -> None:
    async with running_bot() as bot:
        number = await bot.send("one", Button("⏹ Stop", "stop:t1"))
        assert bot.server.posted[0].buttons == [{"text": "⏹ Stop", "callback_data": "stop:t1"}]
        await bot.surface.edit(HOME, number, OutgoingMessage("two"))
        await bot.surface.edit(HOME, number, OutgoingMessage("two"))
        with pytest.raises(ChatGone, match="not found"):
            await bot.surface.edit(HOME, "99999", OutgoingMessage("two"))
    [sent] = bot.server.posted
    assert (sent.text, sent.buttons, sent.edits) == ("two", [], 1)


async def test_replies_typing_and_reactions_are_sent() -> None:
    async with running_bot() as bot:
        number = await bot.server.write("hi")
        await bot.send("ho", reply_to=str(number))
        await bot.surface.show_typing(GROUP_ADDRESS)
        for reaction in ("👀", "⚡", "↪", "⏳", "⏸", "🗑", ""):
            await bot.surface.react(HOME, str(number), reaction)
        with pytest.raises(ChatError, match="REACTION_INVALID"):
            await bot.surface.react(HOME, str(number), "🧨")
    assert bot.server.posted[0].reply_to == number
    assert bot.server.chat_actions == [(-1001, "typing")]
    assert [reaction for _, reaction in bot.server.reactions] == ["👀", "⚡", "✍", "👌", "😴", "🕊", ""]


async def test_a_spoken_reply_is_sent_in_addition_to_its_text() -> None:
    async with running_bot() as bot:
        await bot.send("hello", voice=b"OggS...")
        await bot.send("", voice=b"RIFF...")
        bot.server.fail("sendvoice", TelegramFailure(status=500))
        assert await bot.send("the text stays", voice=b"OggS...") == str(bot.server.posted[-1].id)
    assert bot.server.texts == ["hello", "the text stays"]
    assert bot.server.voice_messages == [("sendvoice", b"OggS..."), ("senddocument", b"RIFF...")]


async def test_a_rate_limit_is_reported_and_does_not_affect_another_chat() -> None:
    async with running_bot() as bot:
        bot.server.fail("sendmessage", TelegramFailure(retry_after=17, chat=1))
        with pytest.raises(ChatError) as caught:
            await bot.send("one")
        await bot.send("other", address=GROUP_ADDRESS)
    assert caught.value.retry_after == 17
    assert bot.server.texts == ["other"]


async def test_sending_to_inaccessible_chats_raises_chat_gone() -> None:
    async with running_bot() as bot:
        bot.server.blocked.add(1)
        for address in (HOME, Address("telegram", "5"), Address("telegram", "-1001", "99"), Address("telegram", "x")):
            with pytest.raises(ChatGone):
                await bot.send("hello", address=address)


async def test_a_migrated_group_is_found_under_its_new_id() -> None:
    async with running_bot() as bot:
        bot.server.moved[-5] = -1001
        old = Address("telegram", "-5")
        number = await bot.send("one", address=old)
        await bot.surface.edit(old, number, OutgoingMessage("two"))
    assert [(one.chat, one.text) for one in bot.server.posted] == [(GROUP["id"], "two")]


async def test_a_lost_response_raises_connection_error_for_a_send_and_chat_error_for_an_edit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with running_bot() as bot:
        bot.server.fail(
            "sendmessage",
            TelegramFailure(drops_connection=True, is_done=True),
            TelegramFailure(html=True),
            TelegramFailure(status=500),
        )
        for _ in range(3):
            with pytest.raises(ConnectionError) as caught:
                await bot.send("one")
            assert TOKEN not in "".join(traceback.format_exception(caught.value))
        number = await bot.send("two")
        bot.server.fail("editmessagetext", TelegramFailure(drops_connection=True))
        with pytest.raises(ChatError):
            await bot.surface.edit(HOME, number, OutgoingMessage("three"))
    assert bot.server.texts == ["one", "two"]
    assert TOKEN not in caplog.text


async def test_sending_without_a_running_surface_raises_an_error_with_a_retry_time() -> None:
    surface = TelegramSurface(TelegramSettings(token=TOKEN))
    with pytest.raises(ChatError) as caught:
        await surface.send(HOME, OutgoingMessage("early"))
    assert caught.value.retry_after == 1.0


async def test_a_real_agent_answers_a_message_and_the_stop_button_stops_the_turn(tmp_path: Path) -> None:
    hang = Hang()
    provider = ScriptedProvider([["**half** of it ", hang], ["next"]])
    settings = TelegramSettings(token=TOKEN, allow=("1",))
    async with (
        telegram_server() as server,
        hark.open(home=tmp_path, workspace=tmp_path, routes=[{"provider": provider}]) as agent,
    ):
        surface = TelegramSurface(TelegramSettings(token=TOKEN, api_base=server.address, allow=("1",)))
        ledger = SqliteChatLedger(tmp_path / "gateway.db")
        senders = SenderPolicy("telegram", settings.allow, PairingFile(tmp_path / "pairing.json"), settings.per_minute)
        services = chat_services(agent, ledger)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Platform(surface, settings, senders, services).run)
            message = await server.write("go")
            await server.until(lambda: any(one.buttons for one in server.posted))
            query = await server.press("Stop")
            await server.until(lambda: server.texts == ["half of it\n\n⏹ stopped"])
            await server.until(lambda: (query, "") in server.answered_queries)
            await server.write("and now?")
            await server.until(lambda: server.texts == ["half of it\n\n⏹ stopped", "next"])
            await server.until(lambda: (message, "👀") in server.reactions)
            tasks.cancel_scope.cancel()
        await ledger.close()
    assert hang.closed.is_set()
    assert server.posted[0].html.startswith("<b>half</b> of it")
    assert not any(one.buttons for one in server.posted)
    assert all("sending" not in task.get_name() for task in asyncio.all_tasks())
