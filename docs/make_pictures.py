"""Takes screenshots of the terminal app and records an animated interrupt: `python -m docs.make_pictures`."""

import asyncio
import re
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.surfaces.terminal.screens import SCENES
from tests.surfaces.terminal.terminal_fixture import TerminalFixture, call, open_terminal

FOLDER = Path(__file__).parent / "pictures"
THEME = "textual-dark"
TASK = "count slowly to 300"
TYPING_PIECES = ("no", ", let", "ters ", "please")
_FONT = re.compile(r"@font-face\s*\{.*?\}", re.DOTALL)
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


@dataclass(frozen=True, slots=True)
class Frame:
    """A screenshot as SVG, and how long the animation shows it."""

    svg: str
    seconds: float


async def take_screenshot(terminal: TerminalFixture, title: str = "hark") -> str:
    """Return the screen as a self-contained SVG."""
    terminal.app.theme = THEME
    terminal.app.draw_progress()
    await terminal.pilot.pause(0.2)
    return _FONT.sub("", terminal.app.export_screenshot(title=title, simplify=True))


async def record_interrupt() -> list[Frame]:
    """Interrupt a running command in the real app, and return the frames."""
    command = "for n in $(seq 300); do echo $n; sleep 1; done"
    script = [["Counting.", call("shell", command=command)], ["Letters it is: **a**, **b**, **c**, **d**, **e**."]]
    frames: list[Frame] = []
    with TemporaryDirectory() as home:
        async with open_terminal(Path(home), script, size=(80, 23)) as terminal:

            async def add_frame(seconds: float) -> None:
                frames.append(Frame(await take_screenshot(terminal), seconds))

            await terminal.type(TASK)
            await add_frame(1.0)
            await terminal.press("enter")
            for number in (1, 2, 3):
                await terminal.until(f"  {number}")
                await add_frame(0.8)
            for piece in TYPING_PIECES:
                await terminal.type(piece)
                await add_frame(0.4)
            await add_frame(0.8)
            await terminal.press("enter")
            await terminal.until("Letters")
            await terminal.wait_until_idle()
            await add_frame(5.0)
    return frames


def animate(frames: list[Frame]) -> str:
    """Return one SVG that shows the frames in an endless loop."""
    match = _SIZE.search(frames[0].svg)
    assert match is not None
    total = sum(frame.seconds for frame in frames)
    starts = [0.0, *accumulate(frame.seconds for frame in frames)]
    rules: list[str] = []
    groups: list[str] = []
    for number, frame in enumerate(frames):
        start, end = 100 * starts[number] / total, 100 * starts[number + 1] / total
        rules.append(
            f"@keyframes frame{number} {{ 0% {{ opacity: 0 }} {start:.3f}% {{ opacity: 1 }} "
            f"{min(end, 99.999):.3f}% {{ opacity: 0 }} 100% {{ opacity: {int(number == 0)} }} }} "
            f"#frame{number} {{ opacity: 0; animation: frame{number} {total:g}s step-end infinite }}"
        )
        groups.append(f'<g id="frame{number}">{frame.svg}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {match[1]} {match[2]}"><style>{" ".join(rules)}</style>'
        f"{''.join(groups)}</svg>\n"
    )


async def main() -> None:
    """Take all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, scene in SCENES.items():
        with TemporaryDirectory() as home:
            async with scene(Path(home)) as terminal:
                _write(f"terminal-{name}.svg", await take_screenshot(terminal))
    _write("interrupt.svg", animate(await record_interrupt()))


def _write(name: str, text: str) -> None:
    (FOLDER / name).write_text(text)


if __name__ == "__main__":
    asyncio.run(main())
