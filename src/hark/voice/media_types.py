"""What kinds of recordings are called."""

_ENDINGS = {
    "audio/ogg": ".ogg",
    "audio/opus": ".ogg",
    "audio/mpeg": ".mp3",
    "audio/mp3": ".mp3",
    "audio/mp4": ".m4a",
    "audio/m4a": ".m4a",
    "audio/x-m4a": ".m4a",
    "audio/aac": ".m4a",
    "audio/wav": ".wav",
    "audio/x-wav": ".wav",
    "audio/wave": ".wav",
    "audio/webm": ".webm",
    "video/webm": ".webm",
    "video/mp4": ".mp4",
    "audio/flac": ".flac",
    "audio/x-flac": ".flac",
}


def plain(media_type: str) -> str:
    """Return a media type without its parameters: `audio/ogg` for `audio/ogg; codecs=opus`."""
    return media_type.partition(";")[0].strip().lower()


def ending(media_type: str) -> str:
    """Return how the name of such a file ends, such as `.ogg`; "" for a kind that is not known."""
    return _ENDINGS.get(plain(media_type), "")
