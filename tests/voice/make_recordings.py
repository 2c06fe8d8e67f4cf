"""Generates the test recordings with espeak-ng: python -m tests.voice.make_recordings."""

import asyncio
import subprocess
from pathlib import Path

from hark.processes.cookies import current_owner
from hark.processes.piped_process import create_spawner
from hark.protocol.speech import Audio
from hark.voice.audio_files import join_as_ogg

FOLDER = Path(__file__).parent / "recordings"
SENTENCES = {
    "stop": "Stop.",
    "list": "Stop that, and list the files in the source folder instead.",
    "weather": "What is the weather like in London today?",
    "tests": "Please run all the tests again.",
    "mail": "Send an email to my brother.",
}


def speak_sentence(sentence: str) -> bytes:
    command = ["espeak-ng", "--stdout", "-v", "en-us", "-s", "145", sentence]
    return subprocess.run(command, check=True, capture_output=True).stdout


async def main() -> None:
    for name, sentence in SENTENCES.items():
        note = await join_as_ogg([Audio(speak_sentence(sentence), "audio/wav")], create_spawner(current_owner()))
        (FOLDER / f"{name}.ogg").write_bytes(note.data)


if __name__ == "__main__":
    asyncio.run(main())
