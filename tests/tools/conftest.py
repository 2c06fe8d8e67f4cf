"""What tests of the tools share."""

import pytest


@pytest.fixture(autouse=True)
def killed_for_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for the death of what was killed: on a busy machine half a second may not be enough."""
    monkeypatch.setattr("hark.processes.tree.KILL_SECONDS", 30.0)
    monkeypatch.setattr("hark.processes.cookies.SWEEP_SECONDS", 30.0)
