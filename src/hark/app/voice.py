"""Voice, as the settings want it: each part is loaded only when it is needed."""

from hark.protocol.processes import Spawn
from hark.protocol.speech import Speaker, Transcriber
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


def make_speaker(settings: VoiceSettings, spawn: Spawn) -> Speaker | None:
    """Return what speaks replies; None when they are not spoken."""
    if not settings.speak:
        return None
    from hark.voice.program_speaker import ProgramSpeaker

    return ProgramSpeaker(settings, spawn)
