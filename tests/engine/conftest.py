"""What tests of the engine share."""

import pytest


@pytest.fixture
def no_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a wake that got lost stay lost: by itself a process looks every few seconds, which would hide it."""
    monkeypatch.setattr("hark.engine.session.router.HEARTBEAT_SECONDS", 1000.0)
