"""Signals in unusual situations: in another thread, twice in a row, without output to a terminal, in other commands."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import open_hark
from tests.interrupts.interrupt_fixture import processes_in
from tests.surfaces.terminal.pseudo_terminal import open_pseudo_terminal
from tests.waiting import at_most, until

PROGRAM = """
import asyncio, hashlib, os, signal, sys, threading, time
from hark.app.shutdown import Signals, Watchdog

def signal_another_thread():
    other = threading.Thread(target=time.sleep, args=(60,), daemon=True)
    other.start()
    time.sleep(0.2)  # the loop waits by then
    signal.pthread_kill(other.ident, signal.SIGTERM)

def signal_twice():
    for _ in range(2):
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

async def main():
    with Signals(Watchdog(30), lambda name: print(f"exit requested by {name}", flush=True)):
        threading.Thread(target=globals()[sys.argv[1]], daemon=True).start()
        if sys.argv[1] == "signal_twice":
            # One long call: Python calls its signal handlers only afterwards.
            hashlib.pbkdf2_hmac("sha256", b"", b"", 1_500_000)
        await asyncio.Event().wait()

asyncio.run(main())
"""
SILENT_SERVER = """
import pathlib, signal, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
pathlib.Path("started").touch()
time.sleep(3600)
"""


async def test_a_signal_that_another_thread_receives_wakes_the_event_loop(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        running = await hark.start_python("-c", PROGRAM, "signal_another_thread")
        try:
            async with asyncio.timeout(at_most(2.0)):
                assert await running.read_line() == "exit requested by SIGTERM\n"
        finally:
            running.process.kill()
            await running.wait_for_end()


async def test_a_signal_that_arrives_twice_before_it_is_handled_counts_twice(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        running = await hark.start_python("-c", PROGRAM, "signal_twice")
        async with asyncio.timeout(at_most(3.0)):
            assert (await running.wait_for_end()).code == 143


async def test_a_closed_terminal_ends_a_gateway_whose_output_is_redirected(tmp_path: Path) -> None:
    command = ("bash", "-c", f"exec {sys.executable} -m hark.cli.main serve --port 0 < /dev/null &> log")
    async with open_hark(tmp_path) as hark:
        log = hark.home / "log"
        async with open_pseudo_terminal(hark.environment, command=command, directory=str(hark.home)) as terminal:
            await until(lambda: log.exists() and "serving on" in log.read_text())
            terminal.process.send_signal(signal.SIGHUP)
            await until(lambda: "the settings were reloaded" in log.read_text())
            terminal.close()
            assert await terminal.wait_for_exit() == 129


@pytest.mark.parametrize("arguments", [("mcp", "test"), ("doctor",)], ids=" ".join)
async def test_a_signal_kills_the_mcp_servers_that_a_command_checks(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    async with open_hark(tmp_path) as hark:
        script = hark.home / "server.py"
        script.write_text(SILENT_SERVER)
        hark.configure(f'[mcp.servers.silent]\ncommand = "{sys.executable}"\nargs = ["{script}"]\n')
        running = await hark.start(*arguments)
        await until((hark.home / "started").exists)
        running.signal(signal.SIGINT)
        assert (await running.wait_for_end()).code == 130
        assert processes_in(hark.home) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
async def test_a_signal_while_a_key_is_entered_turns_the_echo_on_again(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    async with (
        open_hark(tmp_path) as hark,
        open_pseudo_terminal(hark.environment, ("setup",), directory=str(hark.home)) as terminal,
    ):
        await terminal.until("Number")
        terminal.type("3\n")
        await terminal.until("API key")
        await until(lambda: terminal.settings != terminal.original_settings)
        terminal.process.send_signal(number)
        assert await terminal.wait_for_exit() == code
        assert terminal.settings == terminal.original_settings
