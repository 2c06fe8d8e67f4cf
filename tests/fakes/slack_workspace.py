"""A Slack workspace with a bot in it: what its Web API keeps, gives and refuses."""

import itertools
import re
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tests.fakes.slack_payloads import APP, BOT, BOT_ID, METADATA_NAME, Json, Refused, changed, check_message


class Workspace:
    """The state of it. `tell` sends an event: the bot hears its own messages too."""

    def __init__(self, tell: Callable[[Json], object]) -> None:
        self.tell = tell
        self.url = ""
        self.people = {"UANN": "Ann", "UBOB": "Bob", BOT: "hark"}
        self.channels = {"C1", "C2", "DANN"}
        self.messages: dict[str, dict[str, Json]] = defaultdict(dict)
        self.files: dict[str, tuple[bytes, str]] = {}
        self.signs: list[tuple[str, str]] = []
        self.statuses: list[str] = []
        self.pings: list[str] = []
        self.uploaded: list[tuple[str, str, str, bytes]] = []
        self.uploads: dict[str, int] = {}
        self.tells_own = True
        self.tickets: set[str] = set()
        self.numbers = itertools.count(1)

    def do(self, method: str, given: Json) -> Json:
        """Carry out one call of the Web API.

        Raises:
            Refused: Slack would not.
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
            "files.getUploadURLExternal": self._upload_place,
            "files.completeUploadExternal": self._uploaded,
            "assistant.threads.setStatus": self._status,
        }
        if method not in known:
            raise Refused("unknown_method")
        return known[method](given)

    def _open(self, _: Json) -> Json:
        ticket = f"ticket-{next(self.numbers)}"
        self.tickets.add(ticket)
        return {"url": f"{self.url.replace('http', 'ws')}/link?ticket={ticket}&app_id={APP}"}

    def _post(self, given: Json) -> Json:
        channel = self._channel(given)
        self.pings += check_message(given)
        thread = given.get("thread_ts", "")
        if thread and thread not in self.messages[channel]:
            raise Refused("thread_not_found")
        metadata = given.get("metadata")
        if metadata is not None and not METADATA_NAME.fullmatch(metadata["event_type"]):
            raise Refused("invalid_metadata_format")
        message: Json = {
            "type": "message", "ts": self.ts(), "user": BOT, "bot_id": BOT_ID, "text": given.get("text", ""),
            "blocks": given.get("blocks") or [], "unfurl_links": given.get("unfurl_links", True),
            "unfurl_media": given.get("unfurl_media", True), "metadata": metadata,
            **({"thread_ts": thread} if thread else {}),
        }  # fmt: skip
        self.messages[channel][message["ts"]] = message
        if self.tells_own:
            self.tell({**message, "channel": channel})
        return {"channel": channel, "ts": message["ts"], "message": message}

    def _update(self, given: Json) -> Json:
        channel = self._channel(given)
        message = self.messages[channel].get(given.get("ts", ""))
        if message is None:
            raise Refused("message_not_found")
        if message["user"] != BOT:
            raise Refused("cant_update_message")
        if len(given.get("text", "")) > 4000:
            raise Refused("msg_too_long")
        self.pings += check_message(given)
        old = dict(message)
        message["text"] = given.get("text", message["text"])
        if "blocks" in given:
            message["blocks"] = given["blocks"]
        if self.tells_own:
            self.tell(changed(channel, message, old))
        return {"channel": channel, "ts": message["ts"], "text": message["text"]}

    def _react(self, given: Json) -> Json:
        message = self._message(self._channel(given), given.get("timestamp", ""))
        if not re.fullmatch(r"[a-z0-9_+-]+", given.get("name", "")):
            raise Refused("invalid_name")
        if (message["ts"], given["name"]) in self.signs:
            raise Refused("already_reacted")
        self.signs.append((message["ts"], given["name"]))
        return {}

    def _unreact(self, given: Json) -> Json:
        if (given["timestamp"], given["name"]) not in self.signs:
            raise Refused("no_reaction")
        self.signs.remove((given["timestamp"], given["name"]))
        return {}

    def _user(self, given: Json) -> Json:
        name = self.people.get(given.get("user", ""))
        if name is None:
            raise Refused("user_not_found")
        return {"user": {"id": given["user"], "name": name.lower(), "profile": {"display_name": name}, "tz": None}}

    def _replies(self, given: Json) -> Json:
        channel = self._channel(given)
        root = self._message(channel, given.get("ts", ""))
        replies = [one for one in self.messages[channel].values() if one.get("thread_ts") == root["ts"] != one["ts"]]
        users = list(dict.fromkeys(one["user"] for one in replies))
        first = {**root, "thread_ts": root["ts"], "reply_users": users} if replies else root
        return {"messages": [first, *replies][: int(given.get("limit", 1000))]}

    def _history(self, given: Json) -> Json:
        channel = self._channel(given)
        found = [one for one in self.messages[channel].values() if not one.get("thread_ts")]
        return {"messages": found[::-1][: int(given.get("limit", 100))]}

    def _file_info(self, given: Json) -> Json:
        name = given.get("file", "")
        if name not in self.files:
            raise Refused("file_not_found")
        return {"file": self.file(name)}

    def _upload_place(self, given: Json) -> Json:
        name = f"F{next(self.numbers)}"
        self.uploads[name] = int(given["length"])
        return {"upload_url": f"{self.url}/upload/{name}", "file_id": name}

    def _uploaded(self, given: Json) -> Json:
        channel = self._named(given["channel_id"])
        for file in given["files"]:
            if file["id"] not in self.files:
                raise Refused("file_not_found")
            self.uploaded.append((channel, given.get("thread_ts", ""), file["title"], self.files[file["id"]][0]))
        return {"files": given["files"]}

    def _status(self, given: Json) -> Json:
        self._message(self._named(given.get("channel_id", "")), given.get("thread_ts", ""))
        self.statuses.append(given["status"])
        return {}

    def _channel(self, given: Json) -> str:
        return self._named(given.get("channel", ""))

    def _named(self, channel: str) -> str:
        if channel not in self.channels:
            raise Refused("channel_not_found")
        return channel

    def _message(self, channel: str, ts: str) -> Json:
        if ts not in self.messages[channel]:
            raise Refused("message_not_found")
        return self.messages[channel][ts]

    def ts(self) -> str:
        return f"{int(time.time())}.{next(self.numbers):06d}"

    def file(self, name: str, /, **more: Any) -> Json:
        """Return a file of `files` as events have it."""
        content, media_type = self.files[name]
        return {
            "id": name, "name": name, "mimetype": media_type, "size": len(content), "mode": "hosted",
            "is_external": False, "url_private": f"{self.url}/files-pri/{name}",
            "url_private_download": f"{self.url}/files-pri/{name}", "preview": None, **more,
        }  # fmt: skip
