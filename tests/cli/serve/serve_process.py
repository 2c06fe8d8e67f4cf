"""`hark serve` as a process of its own, with its settings in $HARK_HOME/serve.json."""

import argparse
import asyncio
import json
import sys
from typing import Any

from hark.app.settings import SettingsError, config
from hark.app.settings.types import Settings
from hark.app.shutdown import leave_at_once
from hark.cli.serve.gateway import serve


def load() -> Settings:
    file = config.home_directory() / "serve.json"
    written: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return config.load(config.home_directory(), config.workspace(), written)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--token")
    parser.add_argument("--verbose", action="store_true")
    leave_at_once()
    options = parser.parse_args()
    try:
        return asyncio.run(serve(options, load))
    except SettingsError as error:
        sys.stderr.write(f"hark: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"hark: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
