"""What we say, posted to a program: signed, with a key by which it takes each thing once."""

import logging
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import msgspec

from hark.protocol.chat import ChatError, ChatGone
from hark.surfaces.webhook.signatures import signed_headers

SECONDS = 30
CONNECT_SECONDS = 10
MOST_WAIT_SECONDS = 3600.0
_REFUSED = (400, 413, 415, 422)
LOG = logging.getLogger(__name__)

Event = dict[str, Any]


def open_client() -> aiohttp.ClientSession:
    """Return a client whose slow receivers hold nobody else."""
    timeout = aiohttp.ClientTimeout(total=SECONDS, sock_connect=CONNECT_SECONDS)
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=20)
    return aiohttp.ClientSession(timeout=timeout, connector=connector, cookie_jar=aiohttp.DummyCookieJar())


async def post(client: aiohttp.ClientSession, url: str, secret: bytes, event: Event) -> None:
    """Post an event; any status from 200 to 299 means that it was taken.

    Raises:
        ChatGone: The receiver is gone for good (410), or will never take this very event.
        ChatError: It was not taken, or nobody knows: the same again does no harm, for it has the same key.
    """
    body = msgspec.json.encode(event)
    headers = {"Content-Type": "application/json", "User-Agent": "hark", **signed_headers(secret, body, time.time())}
    try:
        async with client.post(url, data=body, headers=headers, allow_redirects=False) as answer:
            status, wait = answer.status, answer.headers.get("Retry-After", "")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ChatError(f"the receiver can't be reached: {type(error).__name__}") from None
    except ValueError:
        raise ChatGone("the hook's url is no address") from None
    if 200 <= status < 300:
        return
    if status == 410:
        raise ChatGone("the receiver is gone (410)")
    if status in _REFUSED:
        LOG.warning("webhook: the receiver will not take %s: status %d", event.get("key"), status)
        raise ChatGone(f"the receiver refuses this with status {status}")
    raise ChatError(f"the receiver answers with status {status}", _seconds(wait))


def _seconds(text: str) -> float | None:
    """Return for how long we are asked to wait: a number of seconds, or a date."""
    if not text:
        return None
    try:
        return min(max(0.0, float(text)), MOST_WAIT_SECONDS)
    except ValueError:
        pass
    try:
        wait = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(0.0, wait), MOST_WAIT_SECONDS)
