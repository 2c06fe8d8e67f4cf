"""A small MCP stdio server for tests, with correct and faulty tools. Starts fast because it imports no package."""

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
    "log", "meet",
)
# fmt: on
TOOLS: list[dict[str, Any]] = [
    {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}} for name in NAMES
]
TOOLS[0]["annotations"] = {"readOnlyHint": True}
PICTURE = "aGVsbG8="

calls_by_request: dict[int, int] = {}
open_meetings: list[dict[str, Any]] = []


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def send_answer(request: dict[str, Any], text: str = "", **more: Any) -> None:
    send({"id": request["id"], "result": {"content": [{"type": "text", "text": text}], **more}})


def write_note(text: str) -> None:
    """Append a line to the file named by the environment variable NOTES, for the test to read."""
    if path := os.environ.get("NOTES"):
        with Path(path).open("a") as out:
            out.write(text + "\n")


def ask_form(request: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "count": {"type": "integer", "minimum": 1},
            "sure": {"type": "boolean"},
        },
        "required": ["colour", "count"],
    }
    calls_by_request[9000 + request["id"]] = request["id"]
    params = {"message": "Choose a colour and a count.", "requestedSchema": schema}
    send({"id": 9000 + request["id"], "method": "elicitation/create", "params": params})


def call_tool(request: dict[str, Any]) -> None:
    name: str = request["params"]["name"]
    arguments: dict[str, Any] = request["params"].get("arguments") or {}
    write_note(f"call {name}")
    match name:
        case "echo":
            send_answer(request, arguments.get("text", ""))
        case "wait":
            pass
        case "late":
            time.sleep(arguments.get("seconds", 1.5))
            send_answer(request, "late")
        case "deaf":
            signal.pause()
        case "ask":
            ask_form(request)
        case "odd_form":
            calls_by_request[9000 + request["id"]] = request["id"]
            params = {"message": "Odd?", "requestedSchema": {"type": "object", "properties": {"a": {"enum": 3}}}}
            send({"id": 9000 + request["id"], "method": "elicitation/create", "params": params})
        case "progress":
            token = request["params"]["_meta"]["progressToken"]
            for step in (1, 2):
                params = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"}
                send({"method": "notifications/progress", "params": params})
            send_answer(request, "done")
        case "child":
            daemon = subprocess.Popen(["setsid", "sleep", "1000"], stdin=subprocess.DEVNULL)
            send_answer(request, str(daemon.pid))
        case "garbage":
            print("Hello, I am a greeting on stdout", flush=True)
            print('{"not": "a message"}\n\n\x00\xff[1,2', flush=True)
            send_answer(request, "after the garbage")
        case "twice":
            send_answer(request, "first")
            send_answer(request, "second")
        case "half":
            sys.stdout.write('{"jsonrpc": "2.0", "id": 1, "resu')
            sys.stdout.flush()
            os._exit(3)
        case "big":
            send_answer(request, "x" * arguments["size"])
        case "grow":
            TOOLS.append({"name": "grown", "inputSchema": {"type": "object", "properties": {}}})
            send({"method": "notifications/tools/list_changed"})
            send_answer(request, "grown")
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
            calls_by_request[9000 + request["id"]] = request["id"]
            send({"id": 9000 + request["id"], "method": method, "params": {"messages": [], "maxTokens": 1}})
        case "log":
            send({"method": "notifications/message", "params": {"level": "info", "data": "a log message"}})
            send_answer(request)
        case "meet":
            open_meetings.append(request)
            if len(open_meetings) == arguments["count"]:
                for one in open_meetings:
                    send_answer(one, "met")
        case "pid":
            send_answer(request, str(os.getpid()))
        case "env":
            send_answer(request, json.dumps(dict(os.environ)))
        case _:
            send_answer(request, f"did {name}")


def list_tools(request: dict[str, Any]) -> None:
    if "pages" not in sys.argv:
        send({"id": request["id"], "result": {"tools": TOOLS}})
        return
    params: dict[str, Any] = request.get("params") or {}
    start = int(params.get("cursor") or 0)
    more = {"nextCursor": str(start + 5)} if start + 5 < len(TOOLS) else {}
    send({"id": request["id"], "result": {"tools": TOOLS[start : start + 5], **more}})


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


def handle_message(message: dict[str, Any]) -> None:
    match message.get("method"):
        case "initialize":
            initialize(message)
        case "tools/list":
            list_tools(message)
        case "tools/call":
            call_tool(message)
        case "resources/list":
            send({"id": message["id"], "result": {"resources": [{"uri": "x://1", "name": "one"}]}})
        case "resources/read":
            contents = [{"uri": message["params"]["uri"], "text": "text of the resource"}]
            send({"id": message["id"], "result": {"contents": contents}})
        case "prompts/list":
            send({"id": message["id"], "result": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]}})
        case "prompts/get":
            text = f"Greet {message['params']['arguments']['who']}"
            content = {"role": "user", "content": {"type": "text", "text": text}}
            send({"id": message["id"], "result": {"messages": [content]}})
        case "notifications/cancelled":
            write_note(f"cancelled {message['params']['requestId']}")
            send_answer({"id": message["params"]["requestId"]}, "too late")
        case None if message.get("id") in calls_by_request:
            reply = json.dumps(message.get("result") or message.get("error"))
            write_note(f"answer {reply}")
            send_answer({"id": calls_by_request.pop(message["id"])}, reply)
        case _ if "id" in message and "method" in message:
            send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})
        case _:
            pass


write_note(f"started {os.getpid()}")
if "exit" in sys.argv:
    sys.exit("I can't start")
if "fails" in sys.argv and Path(os.environ["NOTES"]).read_text().count("started") <= int(os.environ["FAILS"]):
    sys.exit("I can't start yet")
while "slow" in sys.argv and not Path(os.environ["MAY_START"]).exists():
    time.sleep(0.02)
if "child" in sys.argv:
    subprocess.Popen(["sleep", "1000"])  # keeps our stdout open
for line in sys.stdin:
    handle_message(json.loads(line))
