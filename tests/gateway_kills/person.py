"""A person who writes, speaks, edits, deletes, answers and stops, as people do: at any instant, and often too fast."""

import asyncio
import random
import time

from tests.gateway_kills.expectations import (
    ALBUM,
    ASIDE,
    QUEUE,
    RECORDINGS,
    REPLY,
    SPLIT,
    STEER,
    TEXT,
    WORDLESS,
    Book,
    Deed,
    Steer,
    Stop,
    Written,
)
from tests.gateway_kills.platforms.platform import PlatformFixture
from tests.gateway_kills.speech import STOP_NAME, recording

DEEDS = (("say", 74), ("edit", 9), ("delete", 4), ("stop", 9), ("answer", 4))
PLANS = (("talk", 71), ("long", 13), ("huge", 3), ("shell", 5), ("ask", 4), ("choose", 4))
KINDS = (
    *((TEXT, 65), ("voice", 12), (QUEUE, 8), (STEER, 8), (SPLIT, 2), (ALBUM, 2), ("noise", 1), ("silence", 1)),
    (ASIDE, 6),
)
STOPS = (("word", 40), ("command", 20), ("button", 30), ("voice", 10))
STOP_WORDS = ("stop", "Stop!", "halt", "STOPP", "cancel", "стоп", "停止")
RECENT = 4


class Person:
    """One chat's person."""

    def __init__(self, fixture: PlatformFixture, book: Book, seed: int) -> None:
        self.fixture = fixture
        self._book = book
        self._random = random.Random(seed)
        self._recent: list[Written] = []

    async def act(self) -> None:
        """Do something; a person who says something says up to three things at once."""
        match _pick(self._random, DEEDS):
            case "say":
                for _ in range(self._random.choice((1, 1, 2, 3))):
                    await self._say()
            case "edit":
                await self._edit()
            case "delete" if self.fixture.habits.can_delete:
                await self._delete()
            case "stop":
                await self.stop()
            case "answer":
                await self._press()
            case _:
                await self._say()

    async def stop(self, kind: str = "") -> None:
        """Stop what runs, in one of the ways that there are."""
        kind = kind or _pick(self._random, STOPS)
        stop = Stop(self.fixture.session, kind, Deed(time.time()))
        if kind == "button":
            pressed = await self.fixture.press("Stop", stop.deed)
            found = REPLY.findall(pressed.text) if pressed else []
            stop.reply = found[-1] if found else ""
            kind = "word" if pressed is None else kind
        if kind == "voice" and self.fixture.habits.has_commands:
            await self.fixture.speak(recording(STOP_NAME), stop.deed, STOP_NAME)
        elif kind in ("word", "voice"):
            await self.fixture.write(self._random.choice(STOP_WORDS), stop.deed, "")
        elif kind == "command":
            await self.fixture.write("/stop", stop.deed, "")
        stop.kind = kind
        self._book.stops.append(stop)

    async def greet(self) -> None:
        """Say a last word: whatever was held goes on."""
        one = self._write(TEXT, "talk")
        one.id = await self.fixture.write(one.text, one.deed, one.token)

    async def _say(self) -> None:
        kind, habits = _pick(self._random, KINDS), self.fixture.habits
        if kind == SPLIT and habits.has_commands:
            await self._say_long()
        elif kind == ALBUM and habits.has_albums:
            await self._show_album()
        else:
            is_usual = kind in (SPLIT, ALBUM) or (kind == ASIDE and not habits.is_group)
            await self._say_one(TEXT if is_usual else kind)

    async def _say_one(self, kind: str) -> None:
        one = self._write(kind, _pick(self._random, PLANS))
        if kind in RECORDINGS:
            one.id = await self.fixture.speak(recording(one.token), one.deed, one.token)
        else:
            text = one.as_sent(one.text, has_commands=self.fixture.habits.has_commands)
            one.id = await self.fixture.write(text, one.deed, one.token, is_aside=kind == ASIDE)
        if kind != ASIDE:
            self._recent = [*self._recent[1 - RECENT :], one]

    async def _say_long(self) -> None:
        """A text that the client split: both parts belong together."""
        for part in range(2):
            one = self._write(SPLIT, "talk")
            one.text += " and so on" * (self.fixture.habits.full_characters // 10) if part == 0 else ""
            one.id = await self.fixture.write(one.text, one.deed, one.token)

    async def _show_album(self) -> None:
        album = f"album{self._random.getrandbits(48)}"
        for _ in range(self._random.randint(2, 4)):
            one = self._write(ALBUM, "talk")
            one.id = await self.fixture.picture(one.text, one.deed, album)

    def _write(self, kind: str, plan: str) -> Written:
        one = self._book.write(self.fixture.session, kind, plan)
        one.author, one.author_id = self.fixture.author, self.fixture.author_id
        one.delivery = QUEUE if kind in WORDLESS else kind if kind in (QUEUE, STEER) else self.fixture.habits.delivery
        return one

    async def _edit(self) -> None:
        editable = [one for one in self._recent if one.kind in (TEXT, QUEUE, STEER) and one.deleted is None]
        has_commands = self.fixture.habits.has_commands
        if not editable or not (has_commands or editable[-1].deed.taken):
            await self._say()
            return
        one = editable[-1]
        text = f"talk {one.token}e{len(one.edits) + 1}"
        deed = Deed(time.time())
        one.edits.append((text, deed))
        await self.fixture.rewrite(one.id, one.as_sent(text, has_commands=has_commands), deed)

    async def _delete(self) -> None:
        deletable = [one for one in self._recent if one.deleted is None and one.id]
        if not deletable:
            return
        one = deletable[-1]
        one.deleted = Deed(time.time())
        await self.fixture.delete(one.id, one.deleted)

    async def _press(self) -> None:
        """Answer by a button, or tell the running turn the edited text."""
        if await self.fixture.press(self._random.choice(("red", "blue")), Deed(time.time())):
            return
        deed = Deed(time.time())
        if (pressed := await self.fixture.press("Tell it", deed)) is not None:
            self._book.steers.append(Steer(self.fixture.session, pressed.id, deed))


async def live(person: Person, pace: "Pace") -> None:
    """Act until all that is to be said was said."""
    while await pace.next():
        await person.act()


class Pace:
    """How fast all people together go on: no faster than is taken."""

    def __init__(self, book: Book, messages: int, seconds: float, seed: int) -> None:
        """`seconds` pass, on the average, between two deeds of one person."""
        self.has_room = asyncio.Event()
        self.has_room.set()
        self._book = book
        self._messages = messages
        self._seconds = seconds
        self._has_ended = False
        self._random = random.Random(seed)

    async def next(self) -> bool:
        """Wait for one person's next deed; False when it is over."""
        await asyncio.sleep(self._random.expovariate(1 / self._seconds))
        await self.has_room.wait()
        return not self.is_over

    def end(self) -> None:
        """Nobody writes any more, and whoever is held may go."""
        self._has_ended = True
        self.has_room.set()

    @property
    def is_over(self) -> bool:
        return self._has_ended or len(self._book.written) >= self._messages


def _pick(chance: random.Random, choices: tuple[tuple[str, int], ...]) -> str:
    return chance.choices([name for name, _ in choices], [weight for _, weight in choices])[0]
