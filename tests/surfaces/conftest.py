"""One Matrix homeserver for all tests in a process. Each test has its own accounts and rooms."""

from collections.abc import Generator

import pytest

from tests.surfaces.matrix.synapse import INSTALL_SECONDS, START_SECONDS, Synapse, running_synapse


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    setup = pytest.mark.slow_setup(INSTALL_SECONDS + START_SECONDS, reason="the first test installs and starts Synapse")
    for item in items:
        if "matrix" in item.nodeid:
            item.add_marker(setup)


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Generator[Synapse]:
    with running_synapse(tmp_path_factory.mktemp("synapse")) as running:
        yield running
