"""The crash test's fake model, which runs in a separate process.

It checks all requests. The first word of a message selects the reply.
"""

import asyncio
import json
import secrets
from contextlib import suppress
from typing import Any

from tests.fakes.models.behaviours import Exchange, call, delta
from tests.fakes.models.history_rules import check_openai_chat
from tests.fakes.models.server import ModelServer

REQUESTS = 1_000_000
TOKEN_SECONDS = 0.004
# A background child, and a daemon that leaves its process group: a crash would leave both behind.
COMMAND = "sleep 300 & setsid -f sleep 300; sleep 0.05; echo done"
PLANS: dict[str, tuple[tuple[str, dict[str, str]], ...]] = {
    "talk": (),
    "mark": (("mark", {}),),
    "child": (("mark_in_child", {}),),
    "shell": (("shell", {"command": COMMAND}),),
    "all": (("mark", {}), ("mark_in_child", {}), ("shell", {"command": COMMAND})),
}


async def answer(exchange: Exchange) -> None:
    body = exchange.request.body
    try:
        check_openai_chat(body)
    except AssertionError as error:
        print(json.dumps({"invalid": str(error)}), flush=True)
    last: dict[str, Any] = body["messages"][-1]
    calls = PLANS.get(str(last["content"]).split(" ")[0], ()) if last["role"] == "user" else ()
    exchange.request.body = {}  # a long run has many requests, and each contains the whole history
    await exchange.begin()
    for number in range(8):
        await exchange.send_events(delta(content=f"word{number} "))
        await asyncio.sleep(TOKEN_SECONDS)
    for index, (name, arguments) in enumerate(calls):
        one = call(index, f"call_{secrets.token_hex(8)}", name, json.dumps(arguments))
        await exchange.send_events(delta(tool_calls=[one]))
    await exchange.send_events(delta("tool_calls" if calls else "stop"))
    await exchange.end()


async def main() -> None:
    server = ModelServer([answer] * REQUESTS)
    await server.start()
    print(json.dumps({"port": server.port}), flush=True)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
