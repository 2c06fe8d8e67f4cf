"""`hark serve` as a process of its own, with its settings in $HARK_HOME/serve.json."""

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from hark.app.log_form import LogSettings
from hark.app.serve import serve
from hark.app.settings import SettingsError
from hark.app.shutdown import leave_at_once
from hark.surfaces.web.settings import ServeSettings


def load() -> tuple[ServeSettings, LogSettings, list[str]]:
    file = Path(os.environ["HARK_HOME"]) / "serve.json"
    written: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    try:
        return (
            msgspec.convert(written.get("serve", {}), ServeSettings),
            msgspec.convert(written.get("logs", {}), LogSettings),
            [],
        )
    except msgspec.ValidationError as error:
        raise SettingsError(str(error)) from error


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
