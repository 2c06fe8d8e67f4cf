"""Runs `hark serve` as a separate process, with its settings in $HARK_HOME/serve.json."""

import argparse
import asyncio
import json
import sys
from typing import Any

from hark.app.settings import SettingsError, config
from hark.app.settings.types import Settings
from hark.app.shutdown import exit_on_signals
from hark.cli.serve.gateway import serve


def load_settings() -> Settings:
    file = config.home_directory() / "serve.json"
    overrides: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return config.load(config.home_directory(), config.workspace(), overrides)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--token")
    parser.add_argument("--verbose", action="store_true")
    exit_on_signals()
    options = parser.parse_args()
    try:
        return asyncio.run(serve(options, load_settings))
    except SettingsError as error:
        sys.stderr.write(f"hark: {error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"hark: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
