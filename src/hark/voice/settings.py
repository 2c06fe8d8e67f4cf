"""The settings of voice: `[voice]` in config.toml."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class VoiceSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who turns speech into words, and words into speech.

    `echo`: the person is shown what was heard. `hold`: a voice message stops the running turn when it arrives, not when
    its words are known. `language`: such as `en` or `de`; "" leaves it to the model. `base_url`, `model` and
    `api_key_env` are for `stt = "openai"`: any server with `/audio/transcriptions`. `speak`: replies to voice messages
    are spoken, too; by `speak_command`, which gets a sentence on its input and prints a WAV, or else by espeak-ng.
    `record_command` prints what the terminal's microphone hears, as a WAV or another kind, until it is ended.
    """

    stt: Literal["moonshine", "openai", "off"] = "moonshine"
    echo: bool = True
    hold: bool = False
    language: str = ""
    base_url: str = "https://api.openai.com/v1"
    model: str = "whisper-1"
    api_key_env: str = "OPENAI_API_KEY"
    timeout_seconds: Annotated[float, Meta(gt=0)] = 60.0
    speak: bool = False
    speak_command: tuple[str, ...] = ()
    record_command: tuple[str, ...] = ()


def complaint(settings: VoiceSettings) -> str:
    """Return what is wrong with the settings and what to do, or "" """
    language = settings.language.lower().replace("_", "-").partition("-")[0]
    if settings.stt == "moonshine" and language not in ("", "en"):
        return (
            f'The built-in speech recognition knows English only, and [voice] language is "{settings.language}". '
            'For other languages set [voice] stt = "openai", with the base_url of a server that knows them.'
        )
    return ""
