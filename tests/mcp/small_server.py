"""A small MCP server on stdio that does what a test wants, good or bad. It starts in a blink: no package is needed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

# fmt: off
NAMES = (
    "echo", "wait", "deaf", "ask", "progress", "child", "garbage", "twice", "half", "big", "grow", "die",
    "image", "odd", "refuse", "pid", "long.name!", "env", "structure", "link", "odd_form", "late", "roots", "sample",
    "log",
)
# fmt: on
TOOLS: list[dict[str, Any]] = [
    {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}} for name in NAMES
]
TOOLS[0]["annotations"] = {"readOnlyHint": True}
PICTURE = "aGVsbG8="

waiting: dict[int, int] = {}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any], text: str = "", **more: Any) -> None:
    send({"id": request["id"], "result": {"content": [{"type": "text", "text": text}], **more}})


def note(text: str) -> None:
    """Tell the test, in a file that it named."""
    if path := os.environ.get("NOTES"):
        with Path(path).open("a") as out:
            out.write(text + "\n")


def ask(request: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "count": {"type": "integer", "minimum": 1},
            "sure": {"type": "boolean"},
        },
        "required": ["colour", "count"],
    }
    waiting[9000 + request["id"]] = request["id"]
    params = {"message": "How shall it be?", "requestedSchema": schema}
    send({"id": 9000 + request["id"], "method": "elicitation/create", "params": params})


def call(request: dict[str, Any]) -> None:
    name: str = request["params"]["name"]
    given: dict[str, Any] = request["params"].get("arguments") or {}
    note(f"call {name}")
    match name:
        case "echo":
            answer(request, given.get("text", ""))
        case "wait":
            pass
        case "late":
            time.sleep(given.get("seconds", 1.5))
            answer(request, "late")
        case "deaf":
            signal.pause()
        case "ask":
            ask(request)
        case "odd_form":
            waiting[9000 + request["id"]] = request["id"]
            params = {"message": "Odd?", "requestedSchema": {"type": "object", "properties": {"a": {"enum": 3}}}}
            send({"id": 9000 + request["id"], "method": "elicitation/create", "params": params})
        case "progress":
            token = request["params"]["_meta"]["progressToken"]
            for step in (1, 2):
                params = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"}
                send({"method": "notifications/progress", "params": params})
            answer(request, "done")
        case "child":
            daemon = subprocess.Popen(["setsid", "sleep", "1000"], stdin=subprocess.DEVNULL)
            answer(request, str(daemon.pid))
        case "garbage":
            print("Hello, I am a greeting on stdout", flush=True)
            print('{"not": "a message"}\n\n\x00\xff[1,2', flush=True)
            answer(request, "after the garbage")
        case "twice":
            answer(request, "first")
            answer(request, "second")
        case "half":
            sys.stdout.write('{"jsonrpc": "2.0", "id": 1, "resu')
            sys.stdout.flush()
            os._exit(3)
        case "big":
            answer(request, "x" * given["size"])
        case "grow":
            TOOLS.append({"name": "grown", "inputSchema": {"type": "object", "properties": {}}})
            send({"method": "notifications/tools/list_changed"})
            answer(request, "grown")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "image":
            picture = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
            resource = {"type": "resource", "resource": {"uri": "x://1", "text": "inside"}}
            send({"id": request["id"], "result": {"content": [picture, resource]}})
        case "structure":
            send({"id": request["id"], "result": {"content": [], "structuredContent": {"a": 1}}})
        case "link":
            link = {"type": "resource_link", "uri": "x://2", "name": "two"}
            send({"id": request["id"], "result": {"content": [link], "isError": True}})
        case "odd":
            send({"id": request["id"], "result": {"content": "this must be a list"}})
        case "refuse":
            send({"id": request["id"], "error": {"code": -32602, "message": "text is missing"}})
        case "roots" | "sample":
            method = "roots/list" if name == "roots" else "sampling/createMessage"
            waiting[9000 + request["id"]] = request["id"]
            send({"id": 9000 + request["id"], "method": method, "params": {"messages": [], "maxTokens": 1}})
        case "log":
            send({"method": "notifications/message", "params": {"level": "info", "data": "a word for the log"}})
            answer(request)
        case "pid":
            answer(request, str(os.getpid()))
        case "env":
            answer(request, json.dumps(dict(os.environ)))
        case _:
            answer(request, f"did {name}")


def tools(request: dict[str, Any]) -> None:
    if "pages" not in sys.argv:
        send({"id": request["id"], "result": {"tools": TOOLS}})
        return
    params: dict[str, Any] = request.get("params") or {}
    at = int(params.get("cursor") or 0)
    more = {"nextCursor": str(at + 5)} if at + 5 < len(TOOLS) else {}
    send({"id": request["id"], "result": {"tools": TOOLS[at : at + 5], **more}})


def initialize(request: dict[str, Any]) -> None:
    if "hang" in sys.argv:
        signal.pause()
    if "odd" in sys.argv:
        send({"id": request["id"], "result": {"protocolVersion": 5}})
        return
    result = {
        "protocolVersion": request["params"]["protocolVersion"],
        "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "small", "version": "1"},
    }
    send({"id": request["id"], "result": result})


def serve(message: dict[str, Any]) -> None:
    match message.get("method"):
        case "initialize":
            initialize(message)
        case "tools/list":
            tools(message)
        case "tools/call":
            call(message)
        case "resources/list":
            send({"id": message["id"], "result": {"resources": [{"uri": "x://1", "name": "one"}]}})
        case "resources/read":
            contents = [{"uri": message["params"]["uri"], "text": "the text of it"}]
            send({"id": message["id"], "result": {"contents": contents}})
        case "prompts/list":
            send({"id": message["id"], "result": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]}})
        case "prompts/get":
            text = f"Greet {message['params']['arguments']['who']}"
            content = {"role": "user", "content": {"type": "text", "text": text}}
            send({"id": message["id"], "result": {"messages": [content]}})
        case "notifications/cancelled":
            note(f"cancelled {message['params']['requestId']}")
            answer({"id": message["params"]["requestId"]}, "too late")
        case None if message.get("id") in waiting:
            said = json.dumps(message.get("result") or message.get("error"))
            note(f"answer {said}")
            answer({"id": waiting.pop(message["id"])}, said)
        case _ if "id" in message and "method" in message:
            send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
        case _:
            pass


note(f"started {os.getpid()}")
if "exit" in sys.argv:
    sys.exit("I can't start")
if "child" in sys.argv:
    subprocess.Popen(["sleep", "1000"])  # holds our output open
for line in sys.stdin:
    serve(json.loads(line))
