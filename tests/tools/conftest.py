"""Fixtures for all tool tests."""

import pytest


@pytest.fixture(autouse=True)
def wait_longer_for_killed_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow killed processes more time to exit, because half a second may not be enough on a busy machine."""
    monkeypatch.setattr("hark.processes.tree.KILL_SECONDS", 30.0)
    monkeypatch.setattr("hark.processes.cookies.CLEANUP_SECONDS", 30.0)
