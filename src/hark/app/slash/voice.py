"""`/voice`: whether replies are spoken, too."""

from hark.app.sessions.handle import SessionHandle
from hark.app.voice.narrator import SpeechPreference

MEANINGS = {
    SpeechPreference.ON: "every reply comes as a voice message, too",
    SpeechPreference.OFF: "replies are written only",
    SpeechPreference.AUTO: "a reply to a voice message comes as a voice message, too",
}


async def voice(session: SessionHandle, words: str) -> str:
    """Show or change it."""
    wishes = session.parts.wishes()
    if words:
        if words not in tuple(SpeechPreference):
            return "Say /voice on, /voice off or /voice auto."
        try:
            wishes.keep(session.id, SpeechPreference(words))
        except OSError as error:
            return f"It could not be kept: {error}."
    wish = wishes.of(session.id)
    return f"Voice is {wish} here: {MEANINGS[wish]}. (/voice on|off|auto)"
