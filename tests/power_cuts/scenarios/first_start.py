"""The first start of a new home: the next start succeeds, and the first message is not lost."""

from pathlib import Path

import hark
from hark.providers.scripted import ScriptedProvider
from hark.store.chat_ledger import SqliteChatLedger
from tests.power_cuts.scenarios.gateway import open_gateway
from tests.power_cuts.scenarios.messages import check_messages
from tests.power_cuts.scenarios.scenario import CheckResult, History, Marks

SESSION = "first"


class FirstStart:
    """Starts `hark serve` with an empty home, and sends it two messages."""

    name = "first start"

    def prepare(self, root: Path) -> None:
        (root / "home").mkdir(mode=0o700)
        (root / "workspace").mkdir()

    async def run(self, root: Path, marks: Marks) -> None:
        async with open_gateway(root / "home", root / "workspace") as gateway:
            for message in ("m0", "m1"):
                with marks.action("message", message=message):
                    await gateway.say(SESSION, "hello", id=message)
                with marks.action("turn"):
                    await gateway.run_turn(SESSION, [], f"{message}-turn")
        ledger = SqliteChatLedger(root / "home" / "gateway.db")
        with marks.action("ledger"):
            await ledger.pending("telegram")
        await ledger.close()

    async def check(self, root: Path, history: History, result: CheckResult) -> None:
        home, workspace = root / "home", root / "workspace"
        routes = [{"provider": ScriptedProvider([["ok"]] * 10)}]
        try:
            async with hark.open(home=home, workspace=workspace, routes=routes, sweeps=False) as agent:
                store = agent.session(SESSION).engine.store
                await check_messages(store, SESSION, history.all_named("message"), result)
        except Exception as error:  # any error here is a failed start
            result.add("the agent does not start", repr(error)[:300])
        try:
            ledger = SqliteChatLedger(home / "gateway.db")
            await ledger.pending("telegram")
            await ledger.close()
        except Exception as error:  # chat surfaces would not start
            result.add("the chat surfaces do not start", repr(error)[:300])
