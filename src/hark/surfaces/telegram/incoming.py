"""What an update says: who wrote what, where, and whether to us."""

from collections.abc import Iterable
from dataclasses import dataclass

from aiogram.types import Message, MessageEntity, Update, User

from hark.disk.safe_name import safe_name
from hark.protocol.chat import Address, Author
from hark.surfaces.chat.recent_values import Recent

REMEMBERED_ALBUMS = 1000


def address_of(message: Message) -> Address:
    """Return where a message stands. What Telegram calls a thread is a topic, or merely a row of replies."""
    is_topic = message.is_topic_message and message.message_thread_id is not None
    return Address("telegram", str(message.chat.id), str(message.message_thread_id) if is_topic else "")


def author_of(user: User) -> Author:
    """Return who somebody is."""
    return Author(str(user.id), user.full_name)


def is_from_person(message: Message) -> bool:
    """Tell whether a person wrote it: no bot, and nobody who speaks as a group or a channel."""
    return message.from_user is not None and not message.from_user.is_bot and message.sender_chat is None


def quoted_in(message: Message) -> str:
    """Return the text that a message replies to."""
    if message.quote is not None:
        return message.quote.text
    other = _replied_to(message)
    return (other.text or other.caption or "") if other is not None else ""


def described(message: Message) -> str:
    """Return, in words, what a message shows that is neither text nor file; "" when it shows nothing."""
    if message.sticker is not None:
        return f"[sticker {message.sticker.emoji or ''}]"
    if place := message.venue:
        return f"[place: {place.title}, {place.address}, {place.location.latitude}, {place.location.longitude}]"
    if message.location is not None:
        return f"[location: {message.location.latitude}, {message.location.longitude}]"
    if who := message.contact:
        return f"[contact: {who.first_name} {who.last_name or ''} {who.phone_number}]"
    if dice := message.dice:
        return f"[{dice.emoji} shows {dice.value}]"
    if poll := message.poll:
        return f"[poll: {poll.question} {' / '.join(option.text for option in poll.options)}]"
    return ""


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file of a message, not fetched yet."""

    id: str
    name: str
    media_type: str
    size: int
    is_voice: bool = False


def enclosed(message: Message) -> Enclosure | None:
    """Return the file that a message has. A recording without words beside it stands for the text.

    A round video is one too: it can't have words beside it, and people speak in it.
    """
    number = message.message_id
    if message.photo:
        photo = message.photo[-1]  # the largest
        return Enclosure(photo.file_id, f"photo-{number}.jpg", "image/jpeg", photo.file_size or 0)
    if voice := message.voice:
        return Enclosure(voice.file_id, f"voice-{number}.ogg", voice.mime_type or "", voice.file_size or 0, True)
    if audio := message.audio:
        name, kind = safe_name(audio.file_name, f"audio-{number}.mp3"), audio.mime_type or ""
        return Enclosure(audio.file_id, name, kind, audio.file_size or 0, not message.caption)
    if note := message.video_note:
        return Enclosure(note.file_id, f"video-{number}.mp4", "video/mp4", note.file_size or 0, True)
    if file := message.document or message.video:
        return Enclosure(
            file.file_id, safe_name(file.file_name, f"file-{number}"), file.mime_type or "", file.file_size or 0
        )
    return None


def _replied_to(message: Message) -> Message | None:
    """Return what a message replies to. In a topic every message seems to reply to the topic's beginning."""
    other = message.reply_to_message
    return None if other is None or other.forum_topic_created is not None else other


class UpdateReader:
    """Knows our name, and so which messages of a group are said to us."""

    def __init__(self, me: User) -> None:
        self._id = me.id
        self._name = f"@{me.username or ''}".casefold()
        self._albums: Recent[bool] = Recent(REMEMBERED_ALBUMS)

    def note_albums(self, updates: Iterable[Update | None]) -> None:
        """Learn of albums of which one picture names us: all of them are for us then."""
        for update in updates:
            message = update.message if update is not None else None
            if message is not None and message.media_group_id and self.is_for_us(message):
                self._albums.put(message.media_group_id, True)

    def is_for_us(self, message: Message) -> bool:
        """Tell whether a message is said to us: alone with us, by our name, in reply to us, or as a command."""
        if message.chat.type == "private" or self._albums.get(message.media_group_id or ""):
            return True
        other = _replied_to(message)
        if other is not None and other.from_user is not None and other.from_user.id == self._id:
            return True
        text = message.text or message.caption or ""
        return any(self._names_us(entity, text) for entity in _entities(message))

    def words(self, message: Message) -> str:
        """Return what was said, without our name in front; a command without our name behind it."""
        text = message.text or message.caption or ""
        first = next((entity for entity in _entities(message) if entity.offset == 0), None)
        if first is not None and first.type == "bot_command" and self._names_us(first, text):
            name = first.extract_from(text)
            command = name.partition("@")[0]
            text = ("/help" if command == "/start" else command) + text[len(name) :]
        elif first is not None and self._names_us(first, text):
            text = text[len(first.extract_from(text)) :].lstrip(" ,:\n")
        return text

    def _names_us(self, entity: MessageEntity, text: str) -> bool:
        match entity.type:
            case "mention":
                return entity.extract_from(text).casefold() == self._name
            case "text_mention":
                return entity.user is not None and entity.user.id == self._id
            case "bot_command":
                to = entity.extract_from(text).partition("@")[2].casefold()
                return entity.offset == 0 and to in ("", self._name.removeprefix("@"))
            case _:
                return False


def _entities(message: Message) -> list[MessageEntity]:
    return message.entities or message.caption_entities or []
