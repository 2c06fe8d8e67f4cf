"""What the people of one address write, brought to its session."""

import asyncio
import zlib

from hark.protocol.chat import Button, Incoming, Outgoing, Pressed, Removed, Rewritten, Written
from hark.protocol.commands import Delivery
from hark.protocol.meaning import NO_TURN, AnswerMeaning, no_answer
from hark.protocol.messages import UserMessage
from hark.protocol.receipts import Receipt, ReceiptState
from hark.surfaces.chat.chat_route import ChatRoute
from hark.surfaces.chat.message_batch import THROUGH, MergedMessages

QUOTED_CHARACTERS = 500
TAKEN = "I have that message already."
TELL_IT = "↪ Tell it the new text"
FORGOTTEN = "That button is too old; please write it."
NOT_ASKED = "That question is not open any more."
HELD = "{} held; the next message lets them go on (/queue shows them)."
CUT_ANSWER = "A restart came just when you answered “{}”, and ended what had asked for it."


class IncomingHandler:
    """Deals with one thing after the other; each is durable where it belongs when its method returns."""

    def __init__(self, line: ChatRoute) -> None:
        self._line = line
        self._ledger, self._outbox, self._questions = line.ledger, line.outbox, line.questions
        self.joined = MergedMessages()
        self._settling: dict[str, asyncio.Event] = {}

    async def take(self, incoming: Incoming, *, is_stopped: bool, is_again: bool) -> Receipt | None:
        """Deal with what came in. `is_stopped`: a stop came behind it. `is_again`: it may have been begun before."""
        match incoming:
            case Written():
                return await self._hear(incoming, is_stopped=is_stopped, is_again=is_again)
            case Rewritten():
                await self._rewrite(incoming, is_again=is_again)
            case Removed():
                await self._remove(incoming)
            case Pressed():
                await self._press(incoming)
        return None

    async def settled(self, message: str) -> None:
        """Return when a message that was given as an answer is durable as such; any other is, once it was taken.

        One of several parts goes by the id of the first.
        """
        settling = self._settling.pop(message, None)
        if settling is not None:
            await settling.wait()

    async def stop(self, source: str, turn: str, key: str) -> None:
        """Stop what runs (with `turn`, only that one), and say so where nothing else does."""
        settled = await self._line.session.interrupt(source, turn)
        waiting = await self._line.session.queue()
        if settled is None:
            await self._outbox.tell(f"stop:{key}", NO_TURN)
        elif waiting and all(item.state is ReceiptState.HELD for item in waiting):
            count = "1 message is" if len(waiting) == 1 else f"{len(waiting)} messages are"
            await self._outbox.tell(f"stop:{key}", HELD.format(count))

    async def _hear(self, message: Written, *, is_stopped: bool, is_again: bool) -> Receipt | None:
        name = self._line.name_of(message.id)
        if is_again and await self.was_answer(name):
            await self._outbox.tell(f"cut:{name}", CUT_ANSWER.format(message.text))
            return None
        is_message = is_stopped or bool(message.attachments)
        if is_again and not is_message:
            is_message = await self._line.session.has_known(name)  # so it was one: it is no answer, too
        rule = no_answer if is_message else self._questions.answer_in
        meaning = self._line.session.meaning(message.text, rule)
        author = message.author.name or message.author.id
        if isinstance(meaning, AnswerMeaning):
            self._questions.answered(meaning.question, meaning.text, author)
            if await self._answer(meaning.question, meaning.text, message.id):
                return None
        text = message.text
        if message.quoted:
            text = f"[In reply to: {message.quoted[:QUOTED_CHARACTERS]}]\n{text}"
        # From the line to here nothing has waited: a stop meets it before, or at the session's door.
        return await self._line.session.say(
            text, id=name, author=author, attachments=message.attachments, is_stopped=is_stopped
        )

    async def _answer(self, question: str, text: str, message: str) -> bool:
        """Give an answer; False when nobody asks any more. That it was one is noted first: it is no message, too."""
        name, settling = self._line.name_of(message), self._questions.settling(question)
        await self._ledger.sending(self._line.address, f"answer:{name}")
        if await self._line.session.answer(question, text) is None:
            self._settling[message.partition(THROUGH)[0]] = settling
            return True
        await self._ledger.sent(self._line.address, f"answer:{name}", "not asked")
        return False

    async def was_answer(self, name: str) -> bool:
        """Return whether a process that is gone gave a message as an answer. The turn that asked is gone with it."""
        known = await self._ledger.find(self._line.address, f"answer:{name}")
        return known is not None and not known.id

    async def _remove(self, removed: Removed) -> None:
        """Withdraw a message that waits, or what was deleted of it."""
        name, text = self.joined.after(removed)
        if text is None:
            await self._line.session.withdraw(self._line.name_of(name))
        else:
            await self._line.session.edit(self._line.name_of(name), text)

    async def _rewrite(self, edit: Rewritten, *, is_again: bool) -> None:
        """Change a message that waits; of one that runs already, offer to tell the new text.

        So, too, of one that a restart took up before the edit could be made.
        """
        session = self._line.session
        name, text = self.joined.after(edit)
        refusal = await session.edit(self._line.name_of(name), text or "")
        if refusal is None or not (session.running() or is_again):
            return
        if is_again and await self._has_said(self._line.name_of(name), text or ""):
            return  # it was made, and only that was not noted
        key = f"{edit.id}:{zlib.crc32(edit.text.encode()):x}"
        await self._ledger.offer(self._line.address, key, edit.text)
        await self._outbox.send(f"edit:{key}", Outgoing(TAKEN, (Button(TELL_IT, f"steer:{key}"),), edit.id))

    async def _has_said(self, message: str, text: str) -> bool:
        """Return whether the model was told a message of that id with this text."""
        told = (await self._line.session.history()).messages
        return any(isinstance(one, UserMessage) and one.id == message and text in one.text for one in told)

    async def _press(self, pressed: Pressed) -> None:
        kind, _, rest = pressed.value.partition(":")
        session, by = self._line.session, pressed.author.name or pressed.author.id
        if kind == "answer":
            question, _, place = rest.rpartition(":")
            choice = self._questions.choice(question, place)
            self._questions.answered(question, choice or "", by)
            if choice is None or await session.answer(question, choice) is not None:
                await self._outbox.tell(f"press:{pressed.id}", NOT_ASKED)
        elif kind == "steer":
            text = await self._ledger.offered(self._line.address, rest)
            if text:
                await session.say(text, Delivery.STEER, id=self._line.own_name_of(f"edit:{rest}"), author=by)
            else:
                await self._outbox.tell(f"press:{pressed.id}", FORGOTTEN)
        elif kind == "continue":
            await session.say(f"/continue {rest}", id=self._line.own_name_of(f"press:{pressed.id}"), author=by)
