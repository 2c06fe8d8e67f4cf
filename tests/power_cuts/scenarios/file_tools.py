"""File tools, shell commands and `/undo`: an acknowledged file is whole, and undo is right or refused."""

from pathlib import Path

import hark
from hark.protocol.meaning import CommandMeaning
from hark.providers.scripted import ScriptedProvider
from tests.power_cuts.scenarios.gateway import Steps, open_gateway
from tests.power_cuts.scenarios.messages import check_messages
from tests.power_cuts.scenarios.scenario import Action, CheckResult, History, Marks
from tests.power_cuts.scenarios.workspace_state import SHELL, State, describe_content, differing_paths, read_state

SESSION = "power"
BIG_TEXT = "a line of a big file\n" * 20_000
MISSING = "missing"
NOTHING = "There is nothing to undo"
RESTORED = " restored"


def _turns(number: int) -> list[tuple[str, Steps]]:
    """Return the tool calls of one round. An empty list is an undo."""
    patch = (
        "*** Begin Patch\n*** Update File: src/app.py\n@@\n-VERSION = {old}\n+VERSION = {new}\n"
        "*** Add File: src/new{new}.py\n+new = {new}\n*** End Patch\n"
    ).format(old=number, new=number + 1)
    return [
        ("write new", [[("write", {"path": f"new{number}.txt", "content": f"new {number}\n" * 400})]]),
        ("overwrite", [[("write", {"path": "notes.txt", "content": f"notes {number}\n" * 700})]]),
        ("undo", []),
        ("edit", [[("edit", {"path": "todo.md", "old": f"item {number}\n", "new": f"item {number + 1}\n"})]]),
        ("patch", [[("patch", {"patch": patch})]]),
        ("shell", [[("shell", {"command": f"echo {number} > shell-a; rm -f shell-b; seq {number + 900} > shell-c"})]]),
        ("undo", []),
        (
            "two steps",
            [
                [("write", {"path": f"deep/er{number}/one.txt", "content": f"one {number}\n"})],
                [("write", {"path": f"deep/er{number}/two.txt", "content": f"two {number}\n" * 3000})],
            ],
        ),
        ("big", [[("write", {"path": "big.txt", "content": f"{number}\n{BIG_TEXT}"})]]),
        ("undo", []),
        ("undo", []),
    ]


class FileTools:
    """Runs file tools in `hark serve`, and undoes some of the turns."""

    name = "file tools"

    def __init__(self, rounds: int = 3) -> None:
        self._rounds = rounds

    def prepare(self, root: Path) -> None:
        workspace = root / "workspace"
        (workspace / "src").mkdir(parents=True)
        (root / "home").mkdir(mode=0o700)
        files = {
            "notes.txt": "the user's notes\n" * 300,
            "todo.md": "# To do\nitem 0\n",
            "src/app.py": "VERSION = 0\n",
            "big.txt": BIG_TEXT,
            "shell-b": "b\n",
        }
        for name, text in files.items():
            (workspace / name).write_text(text)

    async def run(self, root: Path, marks: Marks) -> None:
        workspace = root / "workspace"
        async with open_gateway(root / "home", workspace) as gateway:
            for number, (label, steps) in enumerate(turn for one in range(self._rounds) for turn in _turns(one)):
                before = read_state(workspace)
                name = "turn" if steps else "undo"
                with marks.action(name, label=label, before=before, message=f"m{number}") as result:
                    if steps:
                        await gateway.run_turn(SESSION, steps, f"m{number}")
                    else:
                        await gateway.say(SESSION, "/undo")
                    result["after"] = read_state(workspace)
                assert result["after"] != before, f"{label} changed nothing"

    async def check(self, root: Path, history: History, result: CheckResult) -> None:
        workspace = root / "workspace"
        if not history.done and history.running is None:
            return
        for path in differing_paths(read_state(workspace), *_legal_states(history)):
            if SHELL not in path:
                result.add("a file is not as acknowledged", describe_content(workspace, path))
        provider = ScriptedProvider([["ok"]] * 50)
        async with hark.open(home=root / "home", workspace=workspace, routes=[{"provider": provider}]) as agent:
            session = agent.session(SESSION)
            await session.wait_until_loaded()
            await session.idle()
            await check_messages(session.engine.store, SESSION, history.all_named("turn"), result)
            before = read_state(workspace)
            text = await session.run_command(CommandMeaning("undo", ""))
        _check_undo(workspace, before, text, history, result)


def _legal_states(history: History) -> list[State]:
    """Return the states after the last acknowledged action, and before and after the running one."""
    states: list[State] = [history.done[-1].result["after"]] if history.done else []
    if history.running:
        states += (history.running.details["before"], history.running.result["after"])
    return states


def _check_undo(workspace: Path, before: State, text: str, history: History, result: CheckResult) -> None:
    after = read_state(workspace)
    stack = _undoable_states(history.done)
    is_undo_running = history.is_running("undo")
    if text.startswith(NOTHING):
        if len(stack) > is_undo_running:
            result.add("undo lost its data", f"{text!r} after {_labels(history)}")
        return
    targets = stack[-2:] if is_undo_running else stack[-1:]
    if history.running and not is_undo_running:
        targets.append(history.running.details["before"])
    damaged = {path: before.get(path, MISSING) for path in differing_paths(before, *_legal_states(history))}
    is_restored = text.partition("\n")[0].partition(":")[0].endswith(RESTORED)
    if not is_restored:
        targets.append(before)
        result.refusals.append(f"{text} [{_labels(history)}]")
    for path in min((_wrong_paths(after, target, damaged, text) for target in targets), key=len):
        detail = describe_content(workspace, path)
        result.add("undo restored a wrong state", f"{detail} after {text[:200]!r}, {_labels(history)}")


def _wrong_paths(after: State, target: State, damaged: State, text: str) -> list[str]:
    """Return the paths that undo did not bring to the target state, and that it does not report.

    The cut may have damaged a file before the undo. If undo leaves such a file alone, it is reported elsewhere.
    """
    return [
        path
        for path in differing_paths(after, target)
        if f"Not undone: {path}" not in text
        and not (path in damaged and damaged[path] == after.get(path, MISSING))
        and not (SHELL in path and path in text)
    ]


def _undoable_states(done: list[Action]) -> list[State]:
    """Return the state before each turn that is not undone."""
    stack: list[State] = []
    for action in done:
        if action.name == "turn":
            stack.append(action.details["before"])
        else:
            stack.pop()
    return stack


def _labels(history: History) -> str:
    last = history.done[-1].details["label"] if history.done else "nothing"
    return f"{last}, during {history.running.details['label']}" if history.running else last
