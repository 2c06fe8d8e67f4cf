"""Webhooks as a chat surface: receives requests from programs and posts the agent's replies to their URLs."""

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

from hark.protocol.chat import (
    Address,
    ChatError,
    ChatGone,
    ChatSurface,
    Deliver,
    IncomingMessage,
    OutgoingMessage,
    PlatformLimits,
)
from hark.protocol.hooks import RETRY_SECONDS, Hook, HookRequest, HookResponse
from hark.protocol.names import session_of_address
from hark.surfaces.chat.settings import PlatformServices
from hark.surfaces.web.api.errors import ApiError
from hark.surfaces.webhook.incoming import SURFACE_NAME, RecentMessages, WebhookReader
from hark.surfaces.webhook.platform import HookSettings, WebhookSettings, hook_secret
from hark.surfaces.webhook.signatures import WebhookVerifier, sign_request
from hark.timing.rate_limit import RateLimit

REQUEST_SECONDS = 30
CONNECT_SECONDS = 10
MAX_RETRY_SECONDS = 3600.0
_PERMANENT_REFUSALS = (400, 413, 415, 422)
LOG = logging.getLogger(__name__)

EventBody = dict[str, Any]
HOOKS_PATH = "/hooks/"
NOT_RUNNING_RETRY_SECONDS = 1.0
STARTUP_SECONDS = 2.0
_JSON_HEADERS = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class ConfiguredHook:
    """A configured hook: its settings, and the objects that verify and read its requests."""

    settings: HookSettings
    secret: bytes
    verifier: WebhookVerifier
    reader: WebhookReader
    limit: RateLimit


class WebhookSurface:
    """The chat surface for all webhooks. A hook's secret replaces pairing. Receivers must ignore repeated keys."""

    name = SURFACE_NAME
    limits = PlatformLimits(characters=100_000, edit_seconds=1.0, knows_keys=True, has_reactions=True)

    def __init__(self, settings: WebhookSettings, is_stop: Callable[[str], bool]) -> None:
        """Create the surface. Raises ChatError if a hook has no secret, ValueError if a template is invalid."""
        self._is_stop = is_stop
        self._max_bytes = round(settings.max_mb * 1_000_000)
        self._per_minute = settings.per_minute
        self._messages = RecentMessages()
        self._hooks = {name: self._configure_hook(name, hook) for name, hook in settings.hooks.items()}
        self._deliver: Deliver | None = None
        self._client: aiohttp.ClientSession | None = None
        self._is_running = asyncio.Event()

    def _configure_hook(self, name: str, settings: HookSettings) -> ConfiguredHook:
        secret = hook_secret(name, settings)
        verifier = WebhookVerifier(settings.signature, secret)
        reader = WebhookReader(name, settings, self._messages)
        return ConfiguredHook(settings, secret, verifier, reader, RateLimit(self._per_minute, self._per_minute / 60))

    def make_hooks(self) -> list[Hook]:
        """Return an HTTP hook for each configured hook."""
        return [
            Hook(
                f"{HOOKS_PATH}{name}",
                partial(self._handle_request, hook),
                self._max_bytes,
                f"Receive signed requests from {name} ({hook.settings.signature}); see docs/webhook.md",
            )
            for name, hook in self._hooks.items()
        ]

    async def run(self, deliver: Deliver) -> None:
        """Receive requests until cancelled. A request is acknowledged after `deliver` has returned."""
        async with open_client() as client:
            self._client, self._deliver = client, deliver
            self._is_running.set()
            try:
                await anyio.sleep_forever()
            finally:
                self._is_running.clear()
                self._client = self._deliver = None

    async def send(self, address: Address, message: OutgoingMessage) -> str:
        """Post a message to the hook's URL and return its key.

        Raises:
            ChatError: The message was not accepted, or the result is unknown. It can be resent under the same key.
        """
        key = message.key or f"note:{secrets.token_hex(8)}"
        await self._post(address, {"type": "message", "key": key, **_message_fields(message)})
        self._messages.record_sent(address, key, message)
        return key

    async def edit(self, address: Address, message: str, new: OutgoingMessage) -> None:
        """Post an edit of a message that the bot sent.

        Raises:
            ChatError: The receiver did not accept it.
        """
        fields = _message_fields(new)
        digest = hashlib.sha256(msgspec.json.encode(fields)).hexdigest()[:16]
        await self._post(address, {"type": "edit", "key": f"{message}:{digest}", "message": message, **fields})
        self._messages.record_sent(address, message, new)

    async def show_typing(self, address: Address) -> None:
        """Do nothing: programs need no typing indicator."""

    async def react(self, address: Address, message: str, reaction: str) -> None:
        """Post a receipt for a message.

        Raises:
            ChatError: The receiver did not accept it.
        """
        key = f"receipt:{message}:{reaction}"
        await self._post(address, {"type": "receipt", "key": key, "message": message, "sign": reaction})

    async def _post(self, address: Address, event: dict[str, Any]) -> None:
        name, _, chat = address.chat.partition("@")
        hook = self._hooks.get(name)
        if hook is None or not hook.settings.url:
            return  # The hook only sends to us, or is no longer configured.
        if self._client is None:
            raise ChatError("The webhook surface is not running.", NOT_RUNNING_RETRY_SECONDS)
        origin = {"hook": name, "chat": chat, "thread": address.thread, "session": session_of_address(address)}
        await post_event(self._client, hook.settings.url, hook.secret, {**event, **origin, "at": time.time()})

    async def _handle_request(self, hook: ConfiguredHook, request: HookRequest) -> HookResponse:
        signature = hook.verifier.verify(request.headers, request.body)
        if not _is_accepted(hook.settings, request):
            return HookResponse(202, '{"ignored":true}', _JSON_HEADERS)
        incoming = hook.reader.read(request.headers, request.body)
        hook.verifier.bind_to_message(signature, incoming.id)
        if isinstance(incoming, IncomingMessage) and not self._is_stop(incoming.text):
            self._enforce_rate_limit(hook)
        await (await self._wait_for_deliver())(incoming)
        accepted = {"id": incoming.id, "session": session_of_address(incoming.address)}
        return HookResponse(202, msgspec.json.encode(accepted).decode(), _JSON_HEADERS)

    def _enforce_rate_limit(self, hook: ConfiguredHook) -> None:
        if not hook.limit.try_consume_token():
            wait_seconds = max(1, round(min(60.0, hook.limit.wait_seconds())))
            text = f"This hook accepts {self._per_minute} messages per minute ([surfaces.webhook] per_minute)."
            raise ApiError(429, "too_fast", text, {"Retry-After": str(wait_seconds)})

    async def _wait_for_deliver(self) -> Deliver:
        """Return the callback that accepts incoming events. Just after startup, wait briefly for `run`.

        Raises:
            ApiError: The surface is not running.
        """
        try:
            async with asyncio.timeout(STARTUP_SECONDS):
                await self._is_running.wait()
        except TimeoutError:
            text = "The webhook surface is not running. Send the request again."
            raise ApiError(503, "not_running", text, {"Retry-After": f"{RETRY_SECONDS}"}) from None
        assert self._deliver is not None
        return self._deliver


def _is_accepted(settings: HookSettings, request: HookRequest) -> bool:
    """Return whether to process a request. GitHub's pings and events that are not configured are ignored."""
    event = request.headers.get("x-github-event", "")
    if settings.signature != "github":
        return True
    return event != "ping" and (not settings.events or event in settings.events)


def _message_fields(message: OutgoingMessage) -> dict[str, Any]:
    """Return the fields of a message in the format for receivers."""
    choices = [{"text": button.text, "value": button.value} for button in message.buttons]
    fields: dict[str, Any] = {"text": message.text, "choices": choices, "reply_to": message.reply_to}
    if message.voice:
        fields["voice"] = {"media_type": "audio/ogg", "data": base64.b64encode(message.voice).decode()}
    return fields


def open_client() -> aiohttp.ClientSession:
    """Return an HTTP client in which a slow receiver doesn't delay others."""
    timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS)
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=20)
    return aiohttp.ClientSession(timeout=timeout, connector=connector, cookie_jar=aiohttp.DummyCookieJar())


async def post_event(client: aiohttp.ClientSession, url: str, secret: bytes, event: EventBody) -> None:
    """Post an event. A status from 200 to 299 means that the receiver accepted it.

    Raises:
        ChatGone: The receiver no longer exists (410), or will never accept this event.
        ChatError: The event was not accepted, or the result is unknown. It can be posted again under the same key.
    """
    body = msgspec.json.encode(event)
    headers = {"Content-Type": "application/json", "User-Agent": "hark", **sign_request(secret, body, time.time())}
    try:
        async with client.post(url, data=body, headers=headers, allow_redirects=False) as answer:
            status, wait = answer.status, answer.headers.get("Retry-After", "")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ChatError(f"The receiver can't be reached: {type(error).__name__}.") from None
    except ValueError:
        raise ChatGone("The hook's url is not a valid URL.") from None
    if 200 <= status < 300:
        return
    if status == 410:
        raise ChatGone("The receiver no longer exists (410).")
    if status in _PERMANENT_REFUSALS:
        LOG.warning("webhook: the receiver refused event %s with status %d", event.get("key"), status)
        raise ChatGone(f"The receiver refused the event with status {status}.")
    raise ChatError(f"The receiver answered with status {status}.", _parse_retry_after(wait))


def _parse_retry_after(text: str) -> float | None:
    """Parse a Retry-After header, which is a number of seconds or a date. Return the seconds to wait, or None."""
    if not text:
        return None
    try:
        return min(max(0.0, float(text)), MAX_RETRY_SECONDS)
    except ValueError:
        pass
    try:
        wait = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(0.0, wait), MAX_RETRY_SECONDS)


def make_surface(settings: WebhookSettings, services: PlatformServices) -> ChatSurface:
    """Return a webhook surface with these settings."""
    surface = WebhookSurface(settings, services.is_stop)
    services.add_hooks(*surface.make_hooks())
    return surface
