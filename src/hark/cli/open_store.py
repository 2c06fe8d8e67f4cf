"""Opens the home's session store for one command."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from hark.app.clock import SystemClock
from hark.app.settings import home_directory
from hark.protocol.store import Store
from hark.store.sqlite import SqliteStore

CLOCK = SystemClock()


@asynccontextmanager
async def open_store() -> AsyncGenerator[Store]:
    """Open the home's session store, and close it on exit."""
    store = await SqliteStore.open(home_directory() / "hark.db", f"{os.getpid()}-{CLOCK.new_id()}", CLOCK)
    try:
        yield store
    finally:
        await store.close()
