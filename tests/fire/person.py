"""A person who writes, speaks, edits, deletes, answers and stops, as people do: at any instant, and often too fast."""

import asyncio
import random
import time

from tests.fire.book import REPLY, Book, Deed, Steer, Stop, Written
from tests.fire.seat import Seat
from tests.fire.speech import STOP_NAME, recording

DEEDS = (("say", 74), ("edit", 9), ("delete", 4), ("stop", 9), ("answer", 4))
PLANS = (("talk", 74), ("long", 13), ("shell", 5), ("ask", 4), ("choose", 4))
KINDS = (("text", 68), ("voice", 12), ("queue", 8), ("steer", 8), ("split", 2), ("noise", 1), ("silence", 1))
STOPS = (("word", 40), ("command", 20), ("button", 30), ("voice", 10))
STOP_WORDS = ("stop", "Stop!", "halt", "STOPP", "cancel", "стоп", "停止")
FULL_CHARACTERS = 3600  # from here on a client may have split a text
RECENT = 4


class Person:
    """One chat's person."""

    def __init__(self, seat: Seat, book: Book, seed: int) -> None:
        self.seat = seat
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
            case "delete" if self.seat.can_delete:
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
        stop = Stop(self.seat.session, kind, Deed(time.time()))
        if kind == "button":
            text = await self.seat.press("Stop", stop.deed)
            found = REPLY.findall(text)
            stop.reply = found[-1] if found else ""
            kind = "word" if not text else kind
        if kind == "voice" and self.seat.has_commands:
            await self.seat.speak(recording(STOP_NAME), stop.deed, STOP_NAME)
        elif kind in ("word", "voice"):
            await self.seat.write(self._random.choice(STOP_WORDS), stop.deed, "")
        elif kind == "command":
            await self.seat.write("/stop", stop.deed, "")
        stop.kind = kind
        self._book.stops.append(stop)

    async def _say(self) -> None:
        kind = _pick(self._random, KINDS)
        if kind == "split" and self.seat.has_commands:
            await self._say_long()
            return
        one = self._book.write(self.seat.session, kind, _pick(self._random, PLANS))
        if kind in ("voice", "noise", "silence"):
            one.id = await self.seat.speak(recording(one.token), one.deed, one.token)
        elif kind in ("queue", "steer") and self.seat.has_commands:
            one.id = await self.seat.write(f"/{kind} {one.text}", one.deed, one.token)
        else:
            one.id = await self.seat.write(one.text, one.deed, one.token)
        self._remember(one)

    async def _say_long(self) -> None:
        """A text that the client split: both parts belong together."""
        for part in range(2):
            one = self._book.write(self.seat.session, "split", "talk")
            one.text += " and so on" * (FULL_CHARACTERS // 10) if part == 0 else ""
            one.id = await self.seat.write(one.text, one.deed, one.token)

    async def _edit(self) -> None:
        editable = [one for one in self._recent if one.kind in ("text", "queue", "steer") and one.deleted is None]
        if not editable or not (self.seat.has_commands or editable[-1].deed.taken):
            await self._say()
            return
        one = editable[-1]
        text = f"talk {one.token}e{len(one.edits) + 1}"
        deed = Deed(time.time())
        one.edits.append((text, deed))
        is_command = one.kind in ("queue", "steer") and self.seat.has_commands
        await self.seat.rewrite(one.id, f"/{one.kind} {text}" if is_command else text, deed)

    async def _delete(self) -> None:
        deletable = [one for one in self._recent if one.deleted is None and one.id]
        if not deletable:
            return
        one = deletable[-1]
        one.deleted = Deed(time.time())
        await self.seat.delete(one.id, one.deleted)

    async def _press(self) -> None:
        """Answer by a button, or tell the running turn the edited text."""
        if await self.seat.press(self._random.choice(("red", "blue")), Deed(time.time())):
            return
        edited = next((one for one in reversed(self._recent) if one.edits), None)
        if edited is not None and await self.seat.press("Tell it", Deed(time.time())):
            self._book.steers.append(Steer(self.seat.session, edited.token))

    def _remember(self, one: Written) -> None:
        self._recent = [*self._recent[1 - RECENT :], one]


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
