"""The voice settings: `[voice]` in config.toml."""

from typing import Annotated, Literal

from msgspec import Meta, Struct


class VoiceSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The settings for speech recognition and speech output.

    `echo`: show the transcript to the user. `hold`: a voice message stops the running turn when it arrives, not when
    it is transcribed. `language`: such as `en` or `de`; "" lets the model decide. `base_url`, `model` and
    `api_key_env` are for `stt = "openai"`: any server with `/audio/transcriptions`. `speak`: replies to voice
    messages are also spoken, by `speak_command`, which reads a sentence from stdin and writes a WAV to stdout, or by
    espeak-ng. `record_command` writes the microphone's audio to stdout, as WAV or another format, until stopped.
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


def find_settings_problem(settings: VoiceSettings) -> str:
    """Describe the problem with the settings and how to fix it. Return "" if the settings are valid."""
    language = settings.language.lower().replace("_", "-").partition("-")[0]
    if settings.stt == "moonshine" and language not in ("", "en"):
        return (
            f'The built-in speech recognition supports English only, but [voice] language is "{settings.language}". '
            'For other languages set [voice] stt = "openai", with the base_url of a server that supports them.'
        )
    return ""
