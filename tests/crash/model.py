"""The crash test's model, a process of its own: a message's first word says what to reply; requests are checked."""

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
# A child in the background, and a daemon that leaves its group: what a crash would leave behind.
COMMAND = "sleep 300 & setsid -f sleep 300; sleep 0.05; echo done"
PLANS: dict[str, tuple[tuple[str, dict[str, str]], ...]] = {
    "talk": (),
    "mark": (("mark", {}),),
    "child": (("mark_in_child", {}),),
    "shell": (("shell", {"command": COMMAND}),),
    "all": (("mark", {}), ("mark_in_child", {}), ("shell", {"command": COMMAND})),
}


async def answer(exchange: Exchange) -> None:
    body = exchange.seen.body
    try:
        check_openai_chat(body)
    except AssertionError as error:
        print(json.dumps({"invalid": str(error)}), flush=True)
    last: dict[str, Any] = body["messages"][-1]
    calls = PLANS.get(str(last["content"]).split(" ")[0], ()) if last["role"] == "user" else ()
    exchange.seen.body = {}  # a long run has many, and each has the whole history
    await exchange.begin()
    for number in range(8):
        await exchange.events(delta(content=f"word{number} "))
        await asyncio.sleep(TOKEN_SECONDS)
    for index, (name, arguments) in enumerate(calls):
        one = call(index, f"call_{secrets.token_hex(8)}", name, json.dumps(arguments))
        await exchange.events(delta(tool_calls=[one]))
    await exchange.events(delta("tool_calls" if calls else "stop"))
    await exchange.end()


async def main() -> None:
    server = ModelServer([answer] * REQUESTS)
    await server.start()
    print(json.dumps({"port": server.port}), flush=True)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
