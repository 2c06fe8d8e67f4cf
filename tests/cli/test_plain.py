"""`hark --plain`: reads and writes lines, from a file, a pipe or a terminal."""

import asyncio
import os
import pty
import sys
from pathlib import Path

from tests.cli.command_line import open_hark
from tests.fakes.models.behaviours import echo, failing, hanging, text, tokens
from tests.waiting import until


async def test_each_line_of_a_file_is_answered_before_the_next_is_read(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo(), echo()]) as hark:
        lines = hark.home / "lines"
        lines.write_text("first line\n\nsecond line\n")
        with lines.open() as file:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "hark.cli.main", "--plain"),
                stdin=file,
                stdout=asyncio.subprocess.PIPE,
                env=hark.environment,
            )
        out, _ = await process.communicate()
    assert process.returncode == 0
    assert out.decode().splitlines()[1:] == ["first line", "second line"]


async def test_piped_lines_are_answered_one_by_one(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo(), echo()]) as hark:
        ended = await hark.run("--plain", typed="one\ntwo\n")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[1:] == ["one", "two"]


async def test_a_message_in_the_inbox_is_answered_before_the_first_line(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo(), echo()]) as hark:
        await hark.run("send", "demo", "sent before")
        ended = await hark.run("--plain", "--session", "demo", typed="a line\n")
    assert ended.code == 0
    assert ended.out.splitlines()[1:] == ["sent before", "a line"]


async def test_empty_input_ends_the_chat_immediately(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hark.cli.main", "--plain"),
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=hark.environment,
        )
        _, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")


async def test_a_failed_turn_is_reported_and_the_chat_continues(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [failing(400), text(["better"])]) as hark:
        ended = await hark.run("--plain", typed="one\ntwo\n")
    assert ended.code == 0
    assert "the server says 400" in ended.out
    assert ended.out.endswith("better\n")


async def test_a_session_can_be_continued_or_resumed_by_name(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [text(["a"]), text(["b"]), text(["c"])]) as hark:
        await hark.run("--plain", "--session", "demo", typed="one\n")
        assert "session demo," in (await hark.run("-c", "--plain", typed="two\n")).out
        assert "session demo," in (await hark.run("-r", "demo", typed="three\n")).out
        unknown = await hark.run("-r", "nothing", typed="")
        assert len(hark.server.requests[2].body["messages"]) == 6
    assert unknown.code == 2
    assert unknown.err == "hark: No session named 'nothing'. `hark sessions` lists them.\n"


async def test_typing_works_during_a_turn_and_a_flood_of_output_does_not_break_the_terminal(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [tokens(40_000), hanging(1)]) as hark:
        terminal, other_end = pty.openpty()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hark.cli.main", "--plain"),
            stdin=other_end,
            stdout=other_end,
            stderr=other_end,
            env=hark.environment,
            start_new_session=True,
        )
        os.close(other_end)
        screen = TerminalOutput(terminal)
        os.write(terminal, b"a flood\n")
        await screen.until(b"tok39999")
        os.write(terminal, b"and now hang\n")
        await hark.server.request(2)
        os.write(terminal, b"/stop\n")
        await screen.until(b"[stopped by user")
        os.write(terminal, b"\x04")
        code = await process.wait()
        screen.close()
    assert code == 0
    assert b"Traceback" not in screen.text


class TerminalOutput:
    """Collects the output of a pseudo-terminal."""

    def __init__(self, terminal: int) -> None:
        self.text = b""
        self._terminal = terminal
        self._more = asyncio.Event()
        asyncio.get_running_loop().add_reader(terminal, self._read)

    async def until(self, text: bytes) -> None:
        await until(lambda: text in self.text, changed=self._more, shows=lambda: self.text)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._terminal)
        os.close(self._terminal)

    def _read(self) -> None:
        try:
            self.text += os.read(self._terminal, 65536)
        except OSError:  # the other end is closed
            asyncio.get_running_loop().remove_reader(self._terminal)
        self._more.set()
