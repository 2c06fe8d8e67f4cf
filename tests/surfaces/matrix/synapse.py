"""A real Synapse homeserver for the tests, installed once into the project's cache and run on its own port."""

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
INSTALL_SECONDS = 600.0
START_SECONDS = 300.0  # for several test processes that each start one on two busy cores
UNLIMITED = {"per_second": 100_000, "burst_count": 100_000}
LOGGING = """
version: 1
formatters: {plain: {format: "%(asctime)s %(name)s %(levelname)s %(message)s"}}
handlers: {file: {class: logging.FileHandler, formatter: plain, filename: FILE}}
root: {level: WARNING, handlers: [file]}
"""


def ensure_installed() -> Path:
    """Return the path of a Python interpreter that can import Synapse. Install Synapse if necessary."""
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
            result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
            if result.returncode:
                output = f"{result.stdout}\n{result.stderr}".strip()[-2000:]
                raise RuntimeError(
                    f"Synapse is needed for these tests but could not be installed: {' '.join(command)}\n{output}"
                )
        ready.touch()
    return python


def _can_import(python: Path) -> bool:
    """Return whether the interpreter can import Synapse. The Python behind its environment may no longer exist."""
    try:
        return subprocess.run([python, "-c", "import synapse"], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


@dataclass(frozen=True)
class Account:
    """An account on the homeserver."""

    id: str
    token: str


class Synapse:
    """A running homeserver."""

    def __init__(self, url: str, directory: Path) -> None:
        self.url = url
        self.directory = directory
        self._admin: Account | None = None

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def register(self, name: str = "", display_name: str = "", *, is_admin: bool = False) -> Account:
        """Register a new account. A unique suffix is added to its name."""
        name = f"{name or 'user'}-{uuid.uuid4().hex[:8]}"
        nonce = self.request("GET", "/_synapse/admin/v1/register")["nonce"]
        mac_parts = [nonce, name, "word", "admin" if is_admin else "notadmin"]
        mac = hmac.new(SECRET.encode(), "\0".join(mac_parts).encode(), hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": name, "password": "word", "admin": is_admin, "mac": mac}
        created = self.request("POST", "/_synapse/admin/v1/register", {**body, "displayname": display_name or name})
        return Account(created["user_id"], created["access_token"])

    def set_rate_limit(self, account: Account, per_second: int, burst: int) -> None:
        """Set an account's rate limit for sending. Zero for both values removes the limit."""
        self._admin = self._admin or self.register("admin", is_admin=True)
        path = f"/_synapse/admin/v1/users/{account.id}/override_ratelimit"
        self.request("POST", path, {"messages_per_second": per_second, "burst_count": burst}, self._admin.token)

    def request(self, method: str, path: str, body: dict[str, Any] | None = None, token: str = "") -> Any:
        """Send a request to the homeserver without the client library, and return the parsed response."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


@contextmanager
def running_synapse(directory: Path) -> Generator[Synapse]:
    """Start a homeserver, and stop it at the end of the context."""
    python = ensure_installed()
    port = _free_port()
    settings = _make_settings(directory, port)
    (directory / "homeserver.yaml").write_text(json.dumps(settings))
    (directory / "logging.yaml").write_text(LOGGING.replace("FILE", str(directory / "synapse.log")))
    command = [str(python), "-m", "synapse.app.homeserver", "--config-path", str(directory / "homeserver.yaml")]
    # Synapse would create its key in a separate run, and its start is slow.
    (directory / "signing.key").write_text(f"ed25519 a_test {base64.b64encode(os.urandom(32)).decode().rstrip('=')}\n")
    with (directory / "output").open("w") as output:
        process = subprocess.Popen(command, cwd=directory, stdout=output, stderr=output)
    try:
        synapse = Synapse(f"http://127.0.0.1:{port}", directory)
        _wait_until_ready(synapse, process)
        yield synapse
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(synapse: Synapse, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            synapse.request("GET", "/_matrix/client/versions")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            output = (synapse.directory / "output").read_text()[-2000:]
            assert process.poll() is None, f"Synapse ended unexpectedly: {output}"
            assert time.monotonic() < deadline, f"Synapse did not start in time: {output}"
            time.sleep(0.05)
        else:
            return


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _make_settings(directory: Path, port: int) -> dict[str, Any]:
    listener = {"port": port, "type": "http", "bind_addresses": ["127.0.0.1"], "resources": [{"names": ["client"]}]}
    limits = dict.fromkeys(("rc_message", "rc_registration", "rc_joins_per_room"), UNLIMITED)
    invites = dict.fromkeys(("per_room", "per_user", "per_issuer"), UNLIMITED)
    return {
        **limits,
        "rc_login": dict.fromkeys(("address", "account", "failed_attempts"), UNLIMITED),
        "rc_joins": {"local": UNLIMITED, "remote": UNLIMITED},
        "rc_invites": invites,
        "rc_media_create": UNLIMITED,
        "rc_room_creation": UNLIMITED,
        "server_name": "hark.test",
        "listeners": [listener],
        "database": {"name": "sqlite3", "args": {"database": str(directory / "homeserver.db")}},
        "media_store_path": str(directory / "media"),
        "signing_key_path": str(directory / "signing.key"),
        "pid_file": str(directory / "pid"),
        "log_config": str(directory / "logging.yaml"),
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
