"""`python -m docs.make_pictures`: takes pictures of the main screens, and of an interrupt step by step."""

import asyncio
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.surfaces.terminal.screens import SCENES
from tests.surfaces.terminal.terminal_fixture import Seat, call, seat

FOLDER = Path(__file__).parent / "pictures"
THEME = "textual-dark"
STEP_SECONDS = 2.5
_FONT = re.compile(r"@font-face\s*\{.*?\}", re.DOTALL)
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


async def picture(one: Seat, title: str) -> str:
    """Return what is on the screen as an SVG that needs nothing from elsewhere."""
    one.app.theme = THEME
    one.app.draw_progress()
    await one.pilot.pause(0.2)
    return _FONT.sub("", one.app.export_screenshot(title=title, simplify=True))


async def interrupt() -> list[str]:
    """Return the steps of an interrupt."""
    counting = "for n in 1 2 3 4 5; do echo $n; sleep 0.3; done; sleep 600"
    script = [["I count.", call("shell", command=counting)], ["Letters, then: **a**, **b**, **c**, **d**."]]
    steps: list[str] = []
    with TemporaryDirectory() as home:
        async with seat(Path(home), script, size=(80, 20)) as one:
            await one.say("count slowly")
            await one.until("  3")
            steps.append(await picture(one, "hark: it works"))
            await one.type("no, letters please")
            steps.append(await picture(one, "hark: you type while it works"))
            await one.press("enter")
            await one.until("Letters")
            await one.rest()
            steps.append(await picture(one, "hark: Enter, and it does that instead"))
    return steps


def stepwise(steps: list[str]) -> str:
    """Return one SVG that shows the steps in turns, for ever."""
    match = _SIZE.search(steps[0])
    assert match is not None
    width, height = match[1], match[2]
    share = 100 / len(steps)
    total = STEP_SECONDS * len(steps)
    style = (
        f"@keyframes turn {{ 0%, {share:.2f}% {{ visibility: visible }} {share + 0.01:.2f}%, 100% "
        f"{{ visibility: hidden }} }} .step {{ visibility: hidden; animation: turn {total}s step-end infinite; }}"
    )
    groups = [
        f'<g class="step" style="animation-delay: {number * STEP_SECONDS}s">{step}</g>'
        for number, step in enumerate(steps)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"><style>{style}</style>'
        f"{''.join(groups)}</svg>\n"
    )


async def main() -> None:
    """Take all of them."""
    FOLDER.mkdir(exist_ok=True)
    for name, scene in SCENES.items():
        with TemporaryDirectory() as home:
            async with scene(Path(home)) as one:
                _write(f"terminal-{name}.svg", await picture(one, "hark"))
    steps = await interrupt()
    for number, step in enumerate(steps, 1):
        _write(f"interrupt-{number}.svg", step)
    _write("interrupt.svg", stepwise(steps))


def _write(name: str, text: str) -> None:
    (FOLDER / name).write_text(text)


if __name__ == "__main__":
    asyncio.run(main())
