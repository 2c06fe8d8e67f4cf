"""Webhooks as a chat surface: what programs post is heard, what we say is posted to them."""

import asyncio
import base64
import hashlib
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any

import aiohttp
import anyio
import msgspec

from hark.protocol.chat import Address, ChatError, ChatGone, ChatSurface, Deliver, Outgoing, PlatformLimits, Written
from hark.protocol.hooks import RETRY_SECONDS, Hook, HookAnswer, HookRequest
from hark.protocol.names import address_session
from hark.surfaces.chat.settings import PlatformServices
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.webhook.incoming import NAME, RecentMessages, WebhookReader
from hark.surfaces.webhook.platform import HookSettings, WebhookSettings, secret_of
from hark.surfaces.webhook.signatures import WebhookSignatures, signed_headers
from hark.timing.rate_limit import RateLimit

SECONDS = 30
CONNECT_SECONDS = 10
MOST_WAIT_SECONDS = 3600.0
_REFUSED = (400, 413, 415, 422)
LOG = logging.getLogger(__name__)

Event = dict[str, Any]
PATH = "/hooks/"
SOON_SECONDS = 1.0
START_SECONDS = 2.0
_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Program:
    """One that calls us and is called: what is set for it, and what its requests are checked by."""

    settings: HookSettings
    secret: bytes
    signatures: WebhookSignatures
    intake: WebhookReader
    limit: RateLimit


class Webhook:
    """A ChatSurface. Who knows a hook's secret may talk; there is no pairing. The receiver takes each key once."""

    name = NAME
    limits = PlatformLimits(characters=100_000, edit_seconds=1.0, knows_keys=True, has_reactions=True)

    def __init__(self, settings: WebhookSettings, is_stop: Callable[[str], bool]) -> None:
        """`is_stop` tells whether a text stops. Raises ChatError without a secret, ValueError for a wrong template."""
        self._is_stop = is_stop
        self._most_bytes = round(settings.max_mb * 1_000_000)
        self._per_minute = settings.per_minute
        self._memory = RecentMessages()
        self._programs = {name: self._program(name, one) for name, one in settings.hooks.items()}
        self._deliver: Deliver | None = None
        self._client: aiohttp.ClientSession | None = None
        self._is_up = asyncio.Event()

    def _program(self, name: str, settings: HookSettings) -> Program:
        secret = secret_of(name, settings)
        signatures = WebhookSignatures(settings.signature, secret)
        intake = WebhookReader(name, settings, self._memory)
        return Program(settings, secret, signatures, intake, RateLimit(self._per_minute, self._per_minute / 60))

    def hooks(self) -> list[Hook]:
        """Return an address for each hook."""
        return [
            Hook(
                f"{PATH}{name}",
                partial(self._take, program),
                self._most_bytes,
                f"What {name} sends, signed ({program.settings.signature}): docs/webhook.md",
            )
            for name, program in self._programs.items()
        ]

    async def run(self, deliver: Deliver) -> None:
        """Take what comes to the hooks until cancelled; it is acknowledged after `deliver` has returned."""
        async with open_client() as client:
            self._client, self._deliver = client, deliver
            self._is_up.set()
            try:
                await anyio.sleep_forever()
            finally:
                self._is_up.clear()
                self._client = self._deliver = None

    async def send(self, address: Address, message: Outgoing) -> str:
        """Post what we say to the hook's url; return its key.

        Raises:
            ChatError: It was not taken, or sending it again under its key does no harm.
        """
        key = message.key or f"note:{secrets.token_hex(8)}"
        await self._post(address, {"type": "message", "key": key, **_said(message)})
        self._memory.said(address, key, message)
        return key

    async def edit(self, address: Address, message: str, new: Outgoing) -> None:
        """Post that something that we said is otherwise now.

        Raises:
            ChatError: It was not taken.
        """
        said = _said(new)
        mark = hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:16]
        await self._post(address, {"type": "edit", "key": f"{message}:{mark}", "message": message, **said})
        self._memory.said(address, message, new)

    async def typing(self, address: Address) -> None:
        """Programs need not see that we are at work."""

    async def react(self, address: Address, message: str, sign: str) -> None:
        """Post what became of a message.

        Raises:
            ChatError: It was not taken.
        """
        key = f"receipt:{message}:{sign}"
        await self._post(address, {"type": "receipt", "key": key, "message": message, "sign": sign})

    async def _post(self, address: Address, event: dict[str, Any]) -> None:
        name, _, chat = address.chat.partition("@")
        program = self._programs.get(name)
        if program is None or not program.settings.url:
            return  # it only talks to us, or is not set up any more
        if self._client is None:
            raise ChatError("webhooks do not run", SOON_SECONDS)
        place = {"hook": name, "chat": chat, "thread": address.thread, "session": address_session(address)}
        await post(self._client, program.settings.url, program.secret, {**event, **place, "at": time.time()})

    async def _take(self, program: Program, request: HookRequest) -> HookAnswer:
        signature = program.signatures.check(request.headers, request.body)
        if not _is_wanted(program.settings, request):
            return HookAnswer(202, '{"ignored":true}', _JSON)
        incoming = program.intake.read(request.headers, request.body)
        program.signatures.count(signature, incoming.id)
        if isinstance(incoming, Written) and not self._is_stop(incoming.text):
            self._count(program)
        await (await self._running())(incoming)
        told = {"id": incoming.id, "session": address_session(incoming.address)}
        return HookAnswer(202, msgspec.json.encode(told).decode(), _JSON)

    def _count(self, program: Program) -> None:
        if not program.limit.take():
            wait = max(1, round(min(60.0, program.limit.wait_seconds())))
            words = f"This hook takes {self._per_minute} messages a minute ([surfaces.webhook] per_minute)."
            raise ApiError(429, "too_fast", words, {"Retry-After": str(wait)})

    async def _running(self) -> Deliver:
        """Return who takes what comes; just after the start it is waited for a moment.

        Raises:
            ApiError: Nobody does.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._is_up.wait()
        except TimeoutError:
            words = "Webhooks do not run at present; send it again."
            raise ApiError(503, "not_running", words, {"Retry-After": f"{RETRY_SECONDS}"}) from None
        assert self._deliver is not None
        return self._deliver


def _is_wanted(settings: HookSettings, request: HookRequest) -> bool:
    """GitHub tries a new hook with a ping, and tells more than one may want."""
    event = request.headers.get("x-github-event", "")
    if settings.signature != "github":
        return True
    return event != "ping" and (not settings.events or event in settings.events)


def _said(message: Outgoing) -> dict[str, Any]:
    """Return a message as programs get it."""
    choices = [{"text": button.text, "value": button.value} for button in message.buttons]
    said: dict[str, Any] = {"text": message.text, "choices": choices, "reply_to": message.reply_to}
    if message.voice:
        said["voice"] = {"media_type": "audio/ogg", "data": base64.b64encode(message.voice).decode()}
    return said


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


def make_surface(settings: WebhookSettings, services: PlatformServices) -> ChatSurface:
    """Return the surface that the settings describe."""
    surface = Webhook(settings, services.is_stop)
    services.add_hooks(*surface.hooks())
    return surface
