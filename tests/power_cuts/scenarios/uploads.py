"""Messages with attachments, to-do lists and notes over HTTP: an acknowledged one is whole."""

import base64
from pathlib import Path

import hark
from hark.providers.scripted import ScriptedProvider
from hark.tools.notes.notes import user_notes
from hark.tools.notes.todo import read_items, todo_file
from tests.power_cuts.scenarios.gateway import Gateway, open_gateway
from tests.power_cuts.scenarios.messages import check_messages, read_messages
from tests.power_cuts.scenarios.scenario import CheckResult, History, Marks

SESSION = "uploads"
NOTES_SESSION = "notes"
SIZES = (10, 5_000, 70_000)


def _content(name: str, size: int) -> bytes:
    return (name.encode() * size)[:size]


class Uploads:
    """Posts attachments to `hark serve`, and runs turns that change the to-do list and the notes."""

    name = "uploads"

    def __init__(self, count: int = 9) -> None:
        self._count = count

    def prepare(self, root: Path) -> None:
        (root / "home").mkdir(mode=0o700)
        (root / "workspace").mkdir()

    async def run(self, root: Path, marks: Marks) -> None:
        async with open_gateway(root / "home", root / "workspace") as gateway:
            for number in range(self._count):
                await self._upload(gateway, number, marks)
                text, message = f"item {number}", f"n{number}"
                calls = [
                    [("todo", {"items": [{"text": text, "status": "pending"}]})],
                    [("memory", {"action": "add", "text": text, "scope": "user"})],
                ]
                with marks.action("notes", text=text, message=message):
                    await gateway.run_turn(NOTES_SESSION, calls, message)

    async def _upload(self, gateway: Gateway, number: int, marks: Marks) -> None:
        message, size = f"a{number}", SIZES[number % len(SIZES)]
        data = base64.b64encode(_content(message, size)).decode()
        file = {"name": f"{message}.bin", "media_type": "application/octet-stream", "data": data}
        with marks.action("attachment", message=message, size=size):
            await gateway.say(SESSION, "[]", id=message, attachments=[file])

    async def check(self, root: Path, history: History, result: CheckResult) -> None:
        home = root / "home"
        _check_notes(home, history, result)
        routes = [{"provider": ScriptedProvider([["ok"]] * 50)}]
        async with hark.open(home=home, workspace=root / "workspace", routes=routes, sweeps=False) as agent:
            store = agent.session(SESSION).engine.store
            attachments = history.all_named("attachment")
            await check_messages(store, SESSION, attachments, result)
            await check_messages(store, NOTES_SESSION, history.all_named("notes"), result)
            messages = {message.id: message for message in await read_messages(store, SESSION)}
        for action in attachments:
            message = messages.get(action.details["message"])
            for attachment in message.attachments if message else ():
                content = _content(action.details["message"], action.details["size"])
                _check_attachment(Path(attachment.path), content, result)


def _check_attachment(file: Path, content: bytes, result: CheckResult) -> None:
    if not file.is_file():
        result.add("an attachment is missing", file.name)
    elif file.read_bytes() != content:
        result.add("an attachment is empty or torn", f"{file.name}, {file.stat().st_size} bytes")


def _check_notes(home: Path, history: History, result: CheckResult) -> None:
    actions = history.all_named("notes")
    running = [history.running.details["text"]] if history.running and history.running.name == "notes" else []
    items = [item.text for item in read_items(todo_file(home, NOTES_SESSION))]
    if actions and items not in ([actions[-1].details["text"]], running):
        result.add("a to-do list is lost", f"{items} after {actions[-1].details['text']}")
    notes = user_notes(home).read()
    for action in actions:
        if action.details["text"] not in notes:
            result.add("a note is lost", action.details["text"])
