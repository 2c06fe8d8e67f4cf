"""A fake Slack workspace with a bot: the state, results and errors of its Web API."""

import itertools
import re
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tests.fakes.slack_payloads import (
    APP,
    BOT,
    BOT_ID,
    METADATA_NAME,
    Json,
    SlackRefusal,
    check_message,
    message_changed,
)


class SlackWorkspace:
    """The state of a fake workspace. As in Slack, the bot also receives events for the messages that it posted."""

    def __init__(self, send_event: Callable[[Json], object]) -> None:
        self.send_event = send_event
        self.url = ""
        self.users = {"UANN": "Ann", "UBOB": "Bob", BOT: "hark"}
        self.channels = {"C1", "C2", "DANN"}
        self.messages: dict[str, dict[str, Json]] = defaultdict(dict)
        self.files: dict[str, tuple[bytes, str]] = {}
        self.reactions: list[tuple[str, str]] = []
        self.statuses: list[str] = []
        self.pings: list[str] = []
        self.uploaded: list[tuple[str, str, str, bytes]] = []
        self.uploads: dict[str, int] = {}
        self.sends_own_events = True
        self.tickets: set[str] = set()
        self.numbers = itertools.count(1)

    def call(self, method: str, arguments: Json) -> Json:
        """Execute one Web API call.

        Raises:
            SlackRefusal: Slack would refuse the call.
        """
        known: dict[str, Callable[[Json], Json]] = {
            "auth.test": lambda _: {"user_id": BOT, "user": "hark", "bot_id": BOT_ID, "team_id": "T1"},
            "apps.connections.open": self._open,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "reactions.add": self._react,
            "reactions.remove": self._unreact,
            "users.info": self._user,
            "conversations.replies": self._replies,
            "conversations.history": self._history,
            "files.info": self._file_info,
            "files.getUploadURLExternal": self._upload_url,
            "files.completeUploadExternal": self._complete_upload,
            "assistant.threads.setStatus": self._status,
        }
        if method not in known:
            raise SlackRefusal("unknown_method")
        return known[method](arguments)

    def _open(self, _: Json) -> Json:
        ticket = f"ticket-{next(self.numbers)}"
        self.tickets.add(ticket)
        return {"url": f"{self.url.replace('http', 'ws')}/link?ticket={ticket}&app_id={APP}"}

    def _post(self, arguments: Json) -> Json:
        channel = self._channel(arguments)
        self.pings += check_message(arguments)
        thread = arguments.get("thread_ts", "")
        if thread and thread not in self.messages[channel]:
            raise SlackRefusal("thread_not_found")
        metadata = arguments.get("metadata")
        if metadata is not None and not METADATA_NAME.fullmatch(metadata["event_type"]):
            raise SlackRefusal("invalid_metadata_format")
        message: Json = {
            "type": "message", "ts": self.new_timestamp(), "user": BOT, "bot_id": BOT_ID,
            "text": arguments.get("text", ""), "blocks": arguments.get("blocks") or [],
            "unfurl_links": arguments.get("unfurl_links", True),
            "unfurl_media": arguments.get("unfurl_media", True), "metadata": metadata,
            **({"thread_ts": thread} if thread else {}),
        }  # fmt: skip
        self.messages[channel][message["ts"]] = message
        if self.sends_own_events:
            self.send_event({**message, "channel": channel})
        return {"channel": channel, "ts": message["ts"], "message": message}

    def _update(self, arguments: Json) -> Json:
        channel = self._channel(arguments)
        message = self.messages[channel].get(arguments.get("ts", ""))
        if message is None:
            raise SlackRefusal("message_not_found")
        if message["user"] != BOT:
            raise SlackRefusal("cant_update_message")
        if len(arguments.get("text", "").encode("utf-16-le", "surrogatepass")) // 2 > 4000:
            raise SlackRefusal("msg_too_long")
        self.pings += check_message(arguments)
        old = dict(message)
        message["text"] = arguments.get("text", message["text"])
        if "blocks" in arguments:
            message["blocks"] = arguments["blocks"]
        if self.sends_own_events:
            self.send_event(message_changed(channel, message, old))
        return {"channel": channel, "ts": message["ts"], "text": message["text"]}

    def _react(self, arguments: Json) -> Json:
        message = self._message(self._channel(arguments), arguments.get("timestamp", ""))
        if not re.fullmatch(r"[a-z0-9_+-]+", arguments.get("name", "")):
            raise SlackRefusal("invalid_name")
        if (message["ts"], arguments["name"]) in self.reactions:
            raise SlackRefusal("already_reacted")
        self.reactions.append((message["ts"], arguments["name"]))
        return {}

    def _unreact(self, arguments: Json) -> Json:
        if (arguments["timestamp"], arguments["name"]) not in self.reactions:
            raise SlackRefusal("no_reaction")
        self.reactions.remove((arguments["timestamp"], arguments["name"]))
        return {}

    def _user(self, arguments: Json) -> Json:
        name = self.users.get(arguments.get("user", ""))
        if name is None:
            raise SlackRefusal("user_not_found")
        return {"user": {"id": arguments["user"], "name": name.lower(), "profile": {"display_name": name}, "tz": None}}

    def _replies(self, arguments: Json) -> Json:
        channel = self._channel(arguments)
        root = self._message(channel, arguments.get("ts", ""))
        replies = [one for one in self.messages[channel].values() if one.get("thread_ts") == root["ts"] != one["ts"]]
        users = list(dict.fromkeys(one["user"] for one in replies))
        first = {**root, "thread_ts": root["ts"], "reply_users": users} if replies else root
        return {"messages": [first, *replies][: int(arguments.get("limit", 1000))]}

    def _history(self, arguments: Json) -> Json:
        channel = self._channel(arguments)
        found = [one for one in self.messages[channel].values() if not one.get("thread_ts")]
        return {"messages": found[::-1][: int(arguments.get("limit", 100))]}

    def _file_info(self, arguments: Json) -> Json:
        name = arguments.get("file", "")
        if name not in self.files:
            raise SlackRefusal("file_not_found")
        return {"file": self.file_object(name)}

    def _upload_url(self, arguments: Json) -> Json:
        name = f"F{next(self.numbers)}"
        self.uploads[name] = int(arguments["length"])
        return {"upload_url": f"{self.url}/upload/{name}", "file_id": name}

    def _complete_upload(self, arguments: Json) -> Json:
        channel = self._check_channel(arguments["channel_id"])
        for file in arguments["files"]:
            if file["id"] not in self.files:
                raise SlackRefusal("file_not_found")
            self.uploaded.append((channel, arguments.get("thread_ts", ""), file["title"], self.files[file["id"]][0]))
        return {"files": arguments["files"]}

    def _status(self, arguments: Json) -> Json:
        self._message(self._check_channel(arguments.get("channel_id", "")), arguments.get("thread_ts", ""))
        self.statuses.append(arguments["status"])
        return {}

    def _channel(self, arguments: Json) -> str:
        return self._check_channel(arguments.get("channel", ""))

    def _check_channel(self, channel: str) -> str:
        if channel not in self.channels:
            raise SlackRefusal("channel_not_found")
        return channel

    def _message(self, channel: str, ts: str) -> Json:
        if ts not in self.messages[channel]:
            raise SlackRefusal("message_not_found")
        return self.messages[channel][ts]

    def new_timestamp(self) -> str:
        return f"{int(time.time())}.{next(self.numbers):06d}"

    def file_object(self, name: str, /, **more: Any) -> Json:
        """Return the file `name` as it appears in events."""
        content, media_type = self.files[name]
        return {
            "id": name, "name": name, "mimetype": media_type, "size": len(content), "mode": "hosted",
            "is_external": False, "url_private": f"{self.url}/files-pri/{name}",
            "url_private_download": f"{self.url}/files-pri/{name}", "preview": None, **more,
        }  # fmt: skip
