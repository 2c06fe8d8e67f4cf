"""Verify webhook requests. A signature must match, be recent, and belong to one message only."""

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from hark.surfaces.web.api.errors import ApiError

TIMESTAMP = "X-Hark-Timestamp"
SIGNATURE = "X-Hark-Signature"
MAX_AGE_SECONDS = 300
MAX_SEEN_SIGNATURES = 10_000
_VERSION = "v1="


def sign_body(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the signature of a body that is sent at this Unix time."""
    return _VERSION + hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def sign_request(secret: bytes, body: bytes, sent_at: float) -> dict[str, str]:
    """Return the headers that sign a request body."""
    timestamp = str(int(sent_at))
    return {TIMESTAMP: timestamp, SIGNATURE: sign_body(secret, timestamp, body)}


class WebhookVerifier:
    """Verifies that requests come from a sender who knows the secret. `kind` is the `signature` setting."""

    def __init__(self, kind: str, secret: bytes, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._clock = clock
        self._verify = {"hark": self._verify_hark, "github": self._verify_github, "bearer": self._verify_bearer}[kind]
        self._seen: OrderedDict[str, str] = OrderedDict()

    def verify(self, headers: Mapping[str, str], body: bytes) -> str:
        """Return the request's signature, or "" if this kind of signature is the same for all requests.

        Raises:
            ApiError: The signature doesn't match or is too old.
        """
        return self._verify(headers, body)

    def bind_to_message(self, signature: str, message_id: str) -> None:
        """Bind a signature to one message. Reuse for the same message is a redelivery; for another one, a forgery.

        Raises:
            ApiError: The signature belongs to another message.
        """
        if not signature:
            return
        known = self._seen.setdefault(signature, message_id)
        if known != message_id:
            raise _bad_signature("This signature was used for another message.")
        if len(self._seen) > MAX_SEEN_SIGNATURES:
            self._seen.popitem(last=False)

    def _verify_hark(self, headers: Mapping[str, str], body: bytes) -> str:
        timestamp, given = headers.get(TIMESTAMP.lower(), ""), headers.get(SIGNATURE.lower(), "")
        if not timestamp or not given:
            raise _bad_signature(f"Send {TIMESTAMP} and {SIGNATURE}: {_VERSION}HMAC-SHA256 of TIMESTAMP.BODY, in hex.")
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16):
            raise _bad_signature(f"{TIMESTAMP} must be the Unix time, in whole seconds.")
        self._require_match(sign_body(self._secret, timestamp, body), given)
        if abs(self._clock() - int(timestamp)) > MAX_AGE_SECONDS:
            raise _bad_signature(f"{TIMESTAMP} is off by more than {MAX_AGE_SECONDS} s. Sign the request again.")
        return given

    def _verify_github(self, headers: Mapping[str, str], body: bytes) -> str:
        given = headers.get("x-hub-signature-256", "")
        self._require_match("sha256=" + hmac.new(self._secret, body, hashlib.sha256).hexdigest(), given)
        return given

    def _verify_bearer(self, headers: Mapping[str, str], body: bytes) -> str:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        self._require_match(self._secret.decode(), given.strip() if scheme.lower() == "bearer" else "")
        return ""

    def _require_match(self, expected: str, given: str) -> None:
        if not hmac.compare_digest(expected.encode(), given.encode(errors="surrogateescape")):
            raise _bad_signature("The signature doesn't match: the secret or the signed body differs.")


def _bad_signature(reason: str) -> ApiError:
    return ApiError(401, "bad_signature", reason)
