"""A simulated user who writes, speaks, edits, deletes, answers and stops at random times, often in quick succession."""

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
    Expectations,
    SteerAction,
    StopAction,
    UserAction,
    UserMessageRecord,
)
from tests.gateway_kills.platforms.platform import PlatformFixture
from tests.gateway_kills.speech import STOP_NAME, recording

ACTIONS = (("say", 74), ("edit", 9), ("delete", 4), ("stop", 9), ("answer", 4))
PLANS = (("talk", 71), ("long", 13), ("huge", 3), ("shell", 5), ("ask", 4), ("choose", 4))
KINDS = (
    *((TEXT, 65), ("voice", 12), (QUEUE, 8), (STEER, 8), (SPLIT, 2), (ALBUM, 2), ("noise", 1), ("silence", 1)),
    (ASIDE, 6),
)
STOPS = (("word", 40), ("command", 20), ("button", 30), ("voice", 10))
STOP_WORDS = ("stop", "Stop!", "halt", "STOPP", "cancel", "стоп", "停止")
RECENT = 4


class KillTestUser:
    """A simulated user in one chat."""

    def __init__(self, fixture: PlatformFixture, expectations: Expectations, seed: int) -> None:
        self.fixture = fixture
        self._expectations = expectations
        self._random = random.Random(seed)
        self._recent: list[UserMessageRecord] = []

    async def act(self) -> None:
        """Perform a random action. If the action is to send, send up to three messages at once."""
        match _weighted_choice(self._random, ACTIONS):
            case "say":
                for _ in range(self._random.choice((1, 1, 2, 3))):
                    await self._send_random()
            case "edit":
                await self._edit()
            case "delete" if self.fixture.features.can_delete:
                await self._delete()
            case "stop":
                await self.stop()
            case "answer":
                await self._press_button()
            case _:
                await self._send_random()

    async def stop(self, kind: str = "") -> None:
        """Stop the running turn with a button, a voice message, a stop word or a command."""
        kind = kind or _weighted_choice(self._random, STOPS)
        stop = StopAction(self.fixture.session, kind, UserAction(time.time()))
        if kind == "button":
            pressed = await self.fixture.press("Stop", stop.action)
            found = REPLY.findall(pressed.text) if pressed else []
            stop.reply = found[-1] if found else ""
            kind = "word" if pressed is None else kind
        if kind == "voice" and self.fixture.features.has_commands:
            await self.fixture.send_recording(recording(STOP_NAME), stop.action, STOP_NAME)
        elif kind in ("word", "voice"):
            await self.fixture.write(self._random.choice(STOP_WORDS), stop.action, "")
        elif kind == "command":
            await self.fixture.write("/stop", stop.action, "")
        stop.kind = kind
        self._expectations.stops.append(stop)

    async def send_final_message(self) -> None:
        """Send a final message, which releases the held messages."""
        one = self._record_message(TEXT, "talk")
        one.id = await self.fixture.write(one.text, one.action, one.token)

    async def _send_random(self) -> None:
        kind, habits = _weighted_choice(self._random, KINDS), self.fixture.features
        if kind == SPLIT and habits.has_commands:
            await self._send_split_text()
        elif kind == ALBUM and habits.has_albums:
            await self._send_album()
        else:
            is_plain = kind in (SPLIT, ALBUM) or (kind == ASIDE and not habits.is_group)
            await self._send_one(TEXT if is_plain else kind)

    async def _send_one(self, kind: str) -> None:
        one = self._record_message(kind, _weighted_choice(self._random, PLANS))
        if kind in RECORDINGS:
            one.id = await self.fixture.send_recording(recording(one.token), one.action, one.token)
        else:
            text = one.as_sent(one.text, has_commands=self.fixture.features.has_commands)
            one.id = await self.fixture.write(text, one.action, one.token, is_aside=kind == ASIDE)
        if kind != ASIDE:
            self._recent = [*self._recent[1 - RECENT :], one]

    async def _send_split_text(self) -> None:
        """Send a long text as two messages, as a client does that splits it at the length limit."""
        for part in range(2):
            one = self._record_message(SPLIT, "talk")
            one.text += " and so on" * (self.fixture.features.split_characters // 10) if part == 0 else ""
            one.id = await self.fixture.write(one.text, one.action, one.token)

    async def _send_album(self) -> None:
        album = f"album{self._random.getrandbits(48)}"
        for _ in range(self._random.randint(2, 4)):
            one = self._record_message(ALBUM, "talk")
            one.id = await self.fixture.send_picture(one.text, one.action, album)

    def _record_message(self, kind: str, plan: str) -> UserMessageRecord:
        one = self._expectations.add_message(self.fixture.session, kind, plan)
        one.author, one.author_id = self.fixture.author, self.fixture.author_id
        one.delivery = QUEUE if kind in WORDLESS else kind if kind in (QUEUE, STEER) else self.fixture.features.delivery
        return one

    async def _edit(self) -> None:
        editable = [one for one in self._recent if one.kind in (TEXT, QUEUE, STEER) and one.deleted is None]
        has_commands = self.fixture.features.has_commands
        if not editable or not (has_commands or editable[-1].action.accepted_at):
            await self._send_random()
            return
        one = editable[-1]
        text = f"talk {one.token}e{len(one.edits) + 1}"
        action = UserAction(time.time())
        one.edits.append((text, action))
        await self.fixture.edit(one.id, one.as_sent(text, has_commands=has_commands), action)

    async def _delete(self) -> None:
        deletable = [one for one in self._recent if one.deleted is None and one.id]
        if not deletable:
            return
        one = deletable[-1]
        one.deleted = UserAction(time.time())
        await self.fixture.delete(one.id, one.deleted)

    async def _press_button(self) -> None:
        """Press an answer button, or the button that sends an edited text to the running turn."""
        if await self.fixture.press(self._random.choice(("red", "blue")), UserAction(time.time())):
            return
        action = UserAction(time.time())
        if (pressed := await self.fixture.press("Send the new text", action)) is not None:
            self._expectations.steers.append(SteerAction(self.fixture.session, pressed.id, action))


async def run_user(user: KillTestUser, pacing: "Pacing") -> None:
    """Perform random actions until all messages have been sent."""
    while await pacing.wait_for_next_action():
        await user.act()


class Pacing:
    """Paces the actions of all users, and pauses them while the gateway is overloaded."""

    def __init__(self, expectations: Expectations, messages: int, seconds: float, seed: int) -> None:
        """`seconds` is the average time between two actions by the same user."""
        self.has_room = asyncio.Event()
        self.has_room.set()
        self._expectations = expectations
        self._messages = messages
        self._seconds = seconds
        self._has_ended = False
        self._random = random.Random(seed)

    async def wait_for_next_action(self) -> bool:
        """Wait until a user's next action is due. Return False when the run is over."""
        await asyncio.sleep(self._random.expovariate(1 / self._seconds))
        await self.has_room.wait()
        return not self.is_over

    def stop(self) -> None:
        """Stop all users, including those that are waiting."""
        self._has_ended = True
        self.has_room.set()

    @property
    def is_over(self) -> bool:
        return self._has_ended or len(self._expectations.messages) >= self._messages


def _weighted_choice(generator: random.Random, choices: tuple[tuple[str, int], ...]) -> str:
    return generator.choices([name for name, _ in choices], [weight for _, weight in choices])[0]
