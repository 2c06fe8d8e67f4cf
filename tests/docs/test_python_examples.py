"""The Python examples of the documentation run as written, with a scripted model."""

import asyncio
import textwrap
from pathlib import Path

import pytest

from tests.cli.command_line import open_hark
from tests.docs.pages import ROOT, code_blocks
from tests.fakes.models.behaviours import hanging

README_EXAMPLE = f"""
import asyncio
import hark

async def main():
{textwrap.indent(code_blocks(ROOT / "README.md", "python")[0].replace("import hark", ""), "    ")}

asyncio.run(main())
"""
PAGE_EXAMPLE = code_blocks(ROOT / "docs" / "python.md", "python")[0]


@pytest.mark.parametrize("source", [README_EXAMPLE, PAGE_EXAMPLE], ids=["README.md", "docs/python.md"])
async def test_the_python_example_interrupts_a_turn(source: str, tmp_path: Path) -> None:
    async with open_hark(tmp_path, [hanging(2)]) as hark:
        script = tmp_path / "example.py"
        script.write_text(source)
        ended = await (await hark.start_python(str(script))).wait_for_end()
        assert ended.code == 0, ended.err
        assert "Interrupted(source='user'" in ended.out


async def test_the_example_script_interrupts_redirects_and_queues(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        running = await hark.start_python(str(ROOT / "examples" / "interrupt.py"))
        ended = await asyncio.wait_for(running.wait_for_end(), 60)
    assert ended.code == 0, ended.err
    assert [line.partition("(")[0] for line in ended.out.splitlines()][-3:] == ["Interrupted", "Completed", "Completed"]
