"""Every command in the documentation's shell examples is run, or checked in parts if it can't be run."""

import asyncio
import re
import shlex
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.cli.command_line import Hark, open_hark
from tests.docs.pages import ROOT, code_blocks, pages
from tests.fakes.models.behaviours import echo

# Tested elsewhere, or harmful to run in a test.
NOT_RUN = {
    "cd hark": "the folder of the checkout",
    "mkdir /tmp/try && cd /tmp/try && hark": "`hark` is run below; the folder is outside of the test's folder",
    'hark serve --host 0.0.0.0 --token "$TOKEN"': "it would listen on every interface",
    "hark skills install https://git.example.com/team/skills.git#skills/release-notes --force": "no such server",
}
RUN_ELSEWHERE = {"docs/webhook.md": "tests/cli/serve/test_serve_webhook.py", "docs/api.md": "test_api_examples below"}
PLACEHOLDERS = {"SESSION": "demo", "NAME": "demo"}


def shell_lines(page: Path) -> list[str]:
    """Return the command lines of a page's shell examples, without comments."""
    lines = [line for code in code_blocks(page, "sh") for line in code.splitlines()]
    return [re.sub(r"\s+# .*$", "", line).strip() for line in lines if line.strip() and not line.startswith("#")]


COMMANDS = {
    (str(page.relative_to(ROOT)), line)
    for page in pages()
    for line in shell_lines(page)
    if str(page.relative_to(ROOT)) not in RUN_ELSEWHERE and line not in NOT_RUN
}
HARK_PAGES = sorted({page for page, line in COMMANDS if line.startswith("hark")})


def test_every_documented_command_has_a_check() -> None:
    kinds = ("hark", "make ", "pip install ")
    assert [line for _, line in COMMANDS if not line.startswith(kinds)] == []


@pytest.mark.parametrize("line", sorted({line for _, line in COMMANDS if line.startswith("make ")}))
def test_a_documented_make_target_exists(line: str) -> None:
    done = subprocess.run(["make", "--dry-run", "--directory", str(ROOT), line.split()[1]], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("line", sorted({line for _, line in COMMANDS if line.startswith("pip install ")}))
def test_a_documented_package_extra_exists(line: str) -> None:
    match = re.fullmatch(r"pip install '([\w-]+)\[([\w,]+)\]'", line)
    assert match is not None
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert match[1] == project["name"]
    assert set(match[2].split(",")) <= project["optional-dependencies"].keys()


@pytest.mark.parametrize("page", HARK_PAGES)
async def test_the_hark_commands_on_a_page_work_in_sequence(page: str, tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo()] * 20) as hark:
        await create_example_data(hark)
        for line in shell_lines(ROOT / page):
            if (page, line) in COMMANDS and line.startswith("hark"):
                await run_line(hark, [PLACEHOLDERS.get(word, word) for word in shlex.split(line)[1:]])


async def create_example_data(hark: Hark) -> None:
    """Create the session and the skill that the examples use."""
    examples = ROOT / "examples" / "skills"
    hark.configure(f'[skills]\nsources = ["{examples}"]\n')
    shutil.copytree(examples / "release-notes", hark.folder / "my-skill")
    (hark.folder / "my-skill" / "SKILL.md").write_text("---\nname: my-skill\ndescription: An example.\n---\nDo it.\n")
    assert (await hark.run("-p", "hello", "--session", "demo")).code == 0


async def run_line(hark: Hark, arguments: list[str]) -> None:
    """Run one command. An interactive command gets an empty input, and the gateway is stopped once it is ready."""
    if arguments[:1] == ["serve"]:
        running = await hark.start(*arguments, "--port", "0")
        await running.wait_for_line("serving on")
        running.signal(signal.SIGTERM)
        ended = await running.wait_for_end()
        assert ended.code == 128 + signal.SIGTERM, (arguments, ended)
    else:
        ended = await hark.run(*arguments)
        assert ended.code == 0, (arguments, ended)


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
async def test_api_examples_work_as_written(tmp_path: Path) -> None:
    async with open_hark(tmp_path, [echo()]) as hark:
        running = await hark.start("serve", "--port", "0")
        base = (await running.wait_for_line("serving on")).rpartition(" ")[2].strip()
        [example] = code_blocks(ROOT / "docs" / "api.md", "sh")
        events, post, interrupt = (line.replace("localhost:8377", base) for line in example.splitlines())
        reading = await asyncio.create_subprocess_shell(
            f"exec {events.rstrip(' &')} -s", stdout=asyncio.subprocess.PIPE
        )
        assert reading.stdout is not None
        await reading.stdout.readuntil(b"retry:")  # curl reads the events now
        assert b'"state":"started"' in await run_shell(post)
        assert b'"outcome"' in await run_shell(interrupt)
        await reading.stdout.readuntil(b"event: message.accepted")
        reading.kill()
        await reading.wait()
        running.signal(signal.SIGTERM)
        await running.wait_for_end()


async def run_shell(line: str) -> bytes:
    process = await asyncio.create_subprocess_shell(
        f"{line} --silent --show-error --fail", stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, line
    return output
