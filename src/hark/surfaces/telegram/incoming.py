"""Parse Telegram messages: the address, author, text and files, and whether a message is addressed to the bot."""

from collections.abc import Iterable
from dataclasses import dataclass

from aiogram.types import Message, MessageEntity, Update, User

from hark.disk.file_names import sanitize_file_name
from hark.protocol.chat import Address, Author
from hark.surfaces.chat.recent_values import RecentValues

MAX_ALBUMS = 1000


def address_of(message: Message) -> Address:
    """Return the address of a message. A Telegram thread counts only if it is a forum topic, not a reply chain."""
    is_topic = message.is_topic_message and message.message_thread_id is not None
    return Address("telegram", str(message.chat.id), str(message.message_thread_id) if is_topic else "")


def author_of(user: User) -> Author:
    """Return the user as an Author with id and full name."""
    return Author(str(user.id), user.full_name)


def is_from_user(message: Message) -> bool:
    """Return whether a user wrote the message, not a bot or an account that posts as a group or channel."""
    return message.from_user is not None and not message.from_user.is_bot and message.sender_chat is None


def quoted_text(message: Message) -> str:
    """Return the text that a message replies to, or "" if there is none."""
    if message.quote is not None:
        return message.quote.text
    replied = _replied_message(message)
    return (replied.text or replied.caption or "") if replied is not None else ""


def replied_id(message: Message) -> str:
    """Return the id of the message that a message replies to, or "" if there is none."""
    replied = _replied_message(message)
    return str(replied.message_id) if replied is not None else ""


def describe_content(message: Message) -> str:
    """Describe content other than text and files, such as a sticker or a location. Return "" if there is none."""
    if message.sticker is not None:
        return f"[sticker {message.sticker.emoji or ''}]"
    if place := message.venue:
        return f"[place: {place.title}, {place.address}, {place.location.latitude}, {place.location.longitude}]"
    if message.location is not None:
        return f"[location: {message.location.latitude}, {message.location.longitude}]"
    if contact := message.contact:
        return f"[contact: {contact.first_name} {contact.last_name or ''} {contact.phone_number}]"
    if dice := message.dice:
        return f"[{dice.emoji} shows {dice.value}]"
    if poll := message.poll:
        return f"[poll: {poll.question} {' / '.join(option.text for option in poll.options)}]"
    return ""


@dataclass(frozen=True, slots=True)
class MessageFile:
    """A message attachment that has not been downloaded."""

    id: str
    name: str
    media_type: str
    size: int
    is_voice: bool = False


def find_file(message: Message) -> MessageFile | None:
    """Return the file of a message, or None.

    Voice recordings, video notes, and audio files without a caption count as voice messages.
    """
    number = message.message_id
    if message.photo:
        photo = message.photo[-1]  # the largest
        return MessageFile(photo.file_id, f"photo-{number}.jpg", "image/jpeg", photo.file_size or 0)
    if voice := message.voice:
        return MessageFile(voice.file_id, f"voice-{number}.ogg", voice.mime_type or "", voice.file_size or 0, True)
    if audio := message.audio:
        name, kind = sanitize_file_name(audio.file_name, f"audio-{number}.mp3"), audio.mime_type or ""
        return MessageFile(audio.file_id, name, kind, audio.file_size or 0, not message.caption)
    if note := message.video_note:
        return MessageFile(note.file_id, f"video-{number}.mp4", "video/mp4", note.file_size or 0, True)
    if file := message.document or message.video:
        return MessageFile(
            file.file_id,
            sanitize_file_name(file.file_name, f"file-{number}"),
            file.mime_type or "",
            file.file_size or 0,
        )
    return None


def _replied_message(message: Message) -> Message | None:
    """Return the message that `message` replies to. Ignores the implicit reply to the start of a forum topic."""
    replied = message.reply_to_message
    return None if replied is None or replied.forum_topic_created is not None else replied


class UpdateReader:
    """Reads messages and detects which group messages are addressed to the bot."""

    def __init__(self, bot: User) -> None:
        self._id = bot.id
        self._name = f"@{bot.username or ''}".casefold()
        self._albums: RecentValues[bool] = RecentValues(MAX_ALBUMS)

    def remember_albums(self, updates: Iterable[Update | None]) -> None:
        """Remember albums in which a message mentions the bot. All messages in them count as addressed to the bot."""
        for update in updates:
            message = update.message if update is not None else None
            if message is not None and message.media_group_id and self.is_addressed(message):
                self._albums.put(message.media_group_id, True)

    def is_addressed(self, message: Message) -> bool:
        """Return whether a message is in a private chat, mentions the bot, replies to it, or is a command for it."""
        if message.chat.type == "private" or self._albums.get(message.media_group_id or ""):
            return True
        replied = _replied_message(message)
        if replied is not None and replied.from_user is not None and replied.from_user.id == self._id:
            return True
        text = message.text or message.caption or ""
        return any(self._mentions_bot(entity, text) for entity in _entities(message))

    def message_text(self, message: Message) -> str:
        """Return the text without a leading mention of the bot, and commands without the bot's name."""
        text = message.text or message.caption or ""
        first = next((entity for entity in _entities(message) if entity.offset == 0), None)
        if first is not None and first.type == "bot_command" and self._mentions_bot(first, text):
            name = first.extract_from(text)
            command = name.partition("@")[0]
            text = ("/help" if command == "/start" else command) + text[len(name) :]
        elif first is not None and self._mentions_bot(first, text):
            text = text[len(first.extract_from(text)) :].lstrip(" ,:\n")
        return text

    def _mentions_bot(self, entity: MessageEntity, text: str) -> bool:
        match entity.type:
            case "mention":
                return entity.extract_from(text).casefold() == self._name
            case "text_mention":
                return entity.user is not None and entity.user.id == self._id
            case "bot_command":
                recipient = entity.extract_from(text).partition("@")[2].casefold()
                return entity.offset == 0 and recipient in ("", self._name.removeprefix("@"))
            case _:
                return False


def _entities(message: Message) -> list[MessageEntity]:
    return message.entities or message.caption_entities or []
