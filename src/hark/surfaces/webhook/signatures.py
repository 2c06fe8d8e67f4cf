"""Who a request is from: signatures that can't be forged, of now, and each for one message only."""

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from hark.surfaces.web.api.errors import ApiError

TIMESTAMP = "X-Hark-Timestamp"
SIGNATURE = "X-Hark-Signature"
MOST_SECONDS = 300
MOST_SEEN = 10_000
_VERSION = "v1="


def signature_of(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the signature of a body that is sent at this Unix time."""
    return _VERSION + hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def signed_headers(secret: bytes, body: bytes, at: float) -> dict[str, str]:
    """Return the headers that prove who sends a body."""
    timestamp = str(int(at))
    return {TIMESTAMP: timestamp, SIGNATURE: signature_of(secret, timestamp, body)}


class WebhookSignatures:
    """Tells which requests are from who knows the secret; `kind` is one of the settings' `signature`."""

    def __init__(self, kind: str, secret: bytes, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._clock = clock
        self._find = {"hark": self._hark, "github": self._github, "bearer": self._bearer}[kind]
        self._seen: OrderedDict[str, str] = OrderedDict()

    def check(self, headers: Mapping[str, str], body: bytes) -> str:
        """Return the request's signature; "" when there is none that would tell one request from another.

        Raises:
            ApiError: It is not from who knows the secret, or not of now.
        """
        return self._find(headers, body)

    def count(self, signature: str, message: str) -> None:
        """Have a signature stand for one message: the same again is a redelivery, another one is a forgery.

        Raises:
            ApiError: It stands for another message already.
        """
        if not signature:
            return
        known = self._seen.setdefault(signature, message)
        if known != message:
            raise _refused("This signature was used for another message.")
        if len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)

    def _hark(self, headers: Mapping[str, str], body: bytes) -> str:
        timestamp, given = headers.get(TIMESTAMP.lower(), ""), headers.get(SIGNATURE.lower(), "")
        if not timestamp or not given:
            raise _refused(f"Send {TIMESTAMP} and {SIGNATURE}: {_VERSION}HMAC-SHA256 of TIMESTAMP.BODY, in hex.")
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16):
            raise _refused(f"{TIMESTAMP} must be the Unix time, in whole seconds.")
        self._compare(signature_of(self._secret, timestamp, body), given)
        if abs(self._clock() - int(timestamp)) > MOST_SECONDS:
            raise _refused(f"{TIMESTAMP} is more than {MOST_SECONDS} s away from the time here. Sign it anew.")
        return given

    def _github(self, headers: Mapping[str, str], body: bytes) -> str:
        given = headers.get("x-hub-signature-256", "")
        self._compare("sha256=" + hmac.new(self._secret, body, hashlib.sha256).hexdigest(), given)
        return given

    def _bearer(self, headers: Mapping[str, str], body: bytes) -> str:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        self._compare(self._secret.decode(), given.strip() if scheme.lower() == "bearer" else "")
        return ""

    def _compare(self, wanted: str, given: str) -> None:
        if not hmac.compare_digest(wanted.encode(), given.encode(errors="surrogateescape")):
            raise _refused("The signature is not right: another secret, or another body than was signed.")


def _refused(why: str) -> ApiError:
    return ApiError(401, "bad_signature", why)
