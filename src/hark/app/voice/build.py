"""Voice, as the settings want it: each part is loaded only when it is needed."""

from hark.processes.piped import Spawn
from hark.protocol.speech import Audio, Speaker, Transcriber
from hark.voice.settings import VoiceSettings


def make_transcriber(settings: VoiceSettings, spawn: Spawn) -> Transcriber | None:
    """Return what turns speech into words, to be closed by its owner; None when voice is off. It starts nothing yet."""
    match settings.stt:
        case "moonshine":
            from hark.voice.moonshine import Moonshine

            return Moonshine(settings, spawn)
        case "openai":
            from hark.voice.openai_speech import OpenAiSpeech

            return OpenAiSpeech(settings)
        case "off":
            return None


def make_speaker(settings: VoiceSettings, spawn: Spawn) -> Speaker:
    """Return what speaks replies; it starts nothing yet."""
    from hark.voice.program_speaker import ProgramSpeaker

    return ProgramSpeaker(settings, spawn)


async def spoken(speaker: Speaker, text: str) -> Audio:
    """Return a text as one WAV; without data when there is nothing in it to be said. Cancelling ends it at once.

    Raises:
        SpeechError: It can't be spoken.
    """
    from hark.voice.audio_files import join_wavs

    pieces = [piece async for piece in speaker.speak(text)]
    return join_wavs(pieces) if pieces else Audio(b"")
