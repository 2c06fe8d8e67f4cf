"""The chat ledger remembers each attempt to send a message, so that a restart does not send it twice."""

from pathlib import Path

from hark.protocol.chat import Address
from hark.store.chat_ledger import SqliteChatLedger

HOME = Address("test", "home")


async def test_a_send_attempt_is_known_after_a_restart_and_gets_its_message_id(tmp_path: Path) -> None:
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    assert await ledger.begin_send(HOME, "reply 1") is None
    await ledger.close()
    ledger = SqliteChatLedger(tmp_path / "gateway.db")
    attempt = await ledger.begin_send(HOME, "reply 1")
    assert attempt is not None
    assert attempt.id == "", "it is unknown whether the platform accepted it"
    assert attempt.at > 0
    await ledger.mark_sent(HOME, "reply 1", "m7")
    sent = await ledger.begin_send(HOME, "reply 1")
    assert sent is not None
    assert sent.id == "m7"
    assert await ledger.begin_send(HOME, "reply 2") is None
    assert await ledger.begin_send(Address("test", "other"), "reply 1") is None
    await ledger.close()
