"""One Matrix homeserver for all tests in a process. Each test has its own accounts and rooms."""

from collections.abc import Generator

import pytest

from tests.surfaces.matrix.synapse import Synapse, running_synapse


@pytest.fixture(scope="session")
def synapse(tmp_path_factory: pytest.TempPathFactory) -> Generator[Synapse]:
    with running_synapse(tmp_path_factory.mktemp("synapse")) as running:
        yield running
