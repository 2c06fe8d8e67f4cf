"""A real Synapse for the tests: installed once into the project's cache, started on a port of its own."""

import base64
import fcntl
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CACHE = Path(__file__).parents[3] / ".cache" / "synapse"
SECRET = "only for tests"
START_SECONDS = 300.0  # where every process of the tests starts one, on two busy cores
FREELY = {"per_second": 100_000, "burst_count": 100_000}
LOGGING = """
version: 1
formatters: {plain: {format: "%(asctime)s %(name)s %(levelname)s %(message)s"}}
handlers: {file: {class: logging.FileHandler, formatter: plain, filename: FILE}}
root: {level: WARNING, handlers: [file]}
"""


def installed() -> Path:
    """Return the interpreter that has Synapse; installs it when it is not there yet."""
    python, ready = CACHE / "bin" / "python", CACHE / "ready"
    CACHE.parent.mkdir(exist_ok=True)
    with (CACHE.parent / "synapse.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if ready.exists() and _can_import(python):
            return python
        uv = shutil.which("uv")
        make = [uv, "venv", "--clear", "--python", sys.executable] if uv else [sys.executable, "-m", "venv", "--clear"]
        add = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
        for command in ([*make, str(CACHE)], [*add, "matrix-synapse"]):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
            if done.returncode:
                said = f"{done.stdout}\n{done.stderr}".strip()[-2000:]
                raise RuntimeError(f"Synapse can't be installed, and these tests need it: {' '.join(command)}\n{said}")
        ready.touch()
    return python


def _can_import(python: Path) -> bool:
    """Tell whether the environment is still of use: the interpreter that made it may be gone."""
    try:
        return subprocess.run([python, "-c", "import synapse"], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


@dataclass(frozen=True)
class Account:
    """Somebody with an account."""

    id: str
    token: str


class Synapse:
    """A homeserver that runs."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self._admin: Account | None = None

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def register(self, name: str = "", display: str = "", *, is_admin: bool = False) -> Account:
        """Make a new account; its name is made its own."""
        name = f"{name or 'user'}-{uuid.uuid4().hex[:8]}"
        nonce = self.ask("GET", "/_synapse/admin/v1/register")["nonce"]
        parts = [nonce, name, "word", "admin" if is_admin else "notadmin"]
        mac = hmac.new(SECRET.encode(), "\0".join(parts).encode(), hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": name, "password": "word", "admin": is_admin, "mac": mac}
        made = self.ask("POST", "/_synapse/admin/v1/register", {**body, "displayname": display or name})
        return Account(made["user_id"], made["access_token"])

    def limit(self, account: Account, per_second: int, burst: int) -> None:
        """Let somebody send no faster than that; 0 and 0 for as fast as they like."""
        self._admin = self._admin or self.register("admin", is_admin=True)
        path = f"/_synapse/admin/v1/users/{account.id}/override_ratelimit"
        self.ask("POST", path, {"messages_per_second": per_second, "burst_count": burst}, self._admin.token)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None, token: str = "") -> Any:
        """Ask the homeserver, past the client library."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


@contextmanager
def running_synapse(folder: Path) -> Generator[Synapse]:
    """Start a homeserver, and end it."""
    python = installed()
    port = _free_port()
    settings = _settings(folder, port)
    (folder / "homeserver.yaml").write_text(json.dumps(settings))
    (folder / "logging.yaml").write_text(LOGGING.replace("FILE", str(folder / "synapse.log")))
    command = [str(python), "-m", "synapse.app.homeserver", "--config-path", str(folder / "homeserver.yaml")]
    # Synapse would make its key itself, in a run of its own, and its start is what takes long.
    (folder / "signing.key").write_text(f"ed25519 a_test {base64.b64encode(os.urandom(32)).decode().rstrip('=')}\n")
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        synapse = Synapse(f"http://127.0.0.1:{port}", folder)
        _wait_for(synapse, process)
        yield synapse
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(synapse: Synapse, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            synapse.ask("GET", "/_matrix/client/versions")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            said = (synapse.folder / "output").read_text()[-2000:]
            assert process.poll() is None, f"Synapse ended by itself: {said}"
            assert time.monotonic() < end, f"Synapse does not start: {said}"
            time.sleep(0.05)
        else:
            return


def _free_port() -> int:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _settings(folder: Path, port: int) -> dict[str, Any]:
    listener = {"port": port, "type": "http", "bind_addresses": ["127.0.0.1"], "resources": [{"names": ["client"]}]}
    fast = dict.fromkeys(("rc_message", "rc_registration", "rc_joins_per_room"), FREELY)
    invites = dict.fromkeys(("per_room", "per_user", "per_issuer"), FREELY)
    return {
        **fast,
        "rc_login": dict.fromkeys(("address", "account", "failed_attempts"), FREELY),
        "rc_joins": {"local": FREELY, "remote": FREELY},
        "rc_invites": invites,
        "rc_media_create": FREELY,
        "rc_room_creation": FREELY,
        "server_name": "hark.test",
        "listeners": [listener],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "homeserver.db")}},
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "pid_file": str(folder / "pid"),
        "log_config": str(folder / "logging.yaml"),
        "registration_shared_secret": SECRET,
        "macaroon_secret_key": SECRET,
        "form_secret": SECRET,
        "bcrypt_rounds": 4,
        "report_stats": False,
        "enable_registration": False,
        "federation_domain_whitelist": [],
        "trusted_key_servers": [],
        "max_upload_size": "30M",
        "presence": {"enabled": False},
    }
