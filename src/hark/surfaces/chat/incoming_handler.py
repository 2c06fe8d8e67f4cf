"""Delivers the messages, edits, deletions and button presses of one chat address to its session."""

import asyncio
import zlib
from collections.abc import Collection

from hark.protocol.chat import (
    Button,
    ButtonPressed,
    IncomingEvent,
    IncomingMessage,
    MessageDeleted,
    MessageEdited,
    OutgoingMessage,
)
from hark.protocol.commands import Delivery
from hark.protocol.meaning import NO_TURN, AnswerMeaning, InvalidAnswerMeaning, Meaning, MessageMeaning
from hark.protocol.messages import UserMessage
from hark.protocol.receipts import Receipt, ReceiptState
from hark.surfaces.chat.chat_route import ChatRoute
from hark.surfaces.chat.message_batch import ID_RANGE, MergedMessages
from hark.text.answers import QUESTION_CLOSED, AnswerResult

QUOTED_CHARACTERS = 500
ALREADY_STARTED = "I have already started on that message, so your edit does not change it."
STEER_LABEL = "↪ Send the new text"
BUTTON_EXPIRED = "This button has expired. Please type your message instead."
ON_HOLD = "{} on hold. Your next message releases {}; /queue shows {}."
ANSWER_INTERRUPTED = "Hark restarted just as you answered “{}”. The restart ended the turn that asked the question."


class IncomingHandler:
    """Handles the incoming items of one address, one at a time. An item is durable when its method returns."""

    def __init__(self, route: ChatRoute) -> None:
        self._route = route
        self._ledger, self._outbox, self._questions = route.ledger, route.outbox, route.questions
        self.merged = MergedMessages()
        self._unsettled_answers: dict[str, asyncio.Event] = {}

    async def handle(
        self, incoming: IncomingEvent, *, is_stopped: bool, is_retry: bool, known: Collection[str] | None = None
    ) -> Receipt | None:
        """Handle an item. `is_stopped`: a stop arrived after the item. `is_retry`: an earlier attempt may exist.

        `known`: the questions that were open when the item arrived, if it was delayed.
        """
        match incoming:
            case IncomingMessage():
                return await self._handle_message(incoming, known, is_stopped=is_stopped, is_retry=is_retry)
            case MessageEdited():
                await self._handle_edit(incoming, is_retry=is_retry)
            case MessageDeleted():
                await self._handle_deletion(incoming)
            case ButtonPressed():
                await self._handle_press(incoming)
        return None

    async def wait_until_durable(self, message_id: str) -> None:
        """Wait until a message that was used as an answer is durable. Other messages are durable once handled.

        A message of several parts is identified by the id of its first part.
        """
        durable = self._unsettled_answers.pop(message_id, None)
        if durable is not None:
            await durable.wait()

    async def stop_turn(self, source: str, turn: str, key: str) -> None:
        """Stop the running turn, or only `turn` if given. Report if no turn was running or if messages are on hold."""
        settled = await self._route.session.interrupt(source, turn)
        queued = await self._route.session.queue()
        if settled is None:
            await self._outbox.send_text(f"stop:{key}", NO_TURN)
        elif queued and all(item.state is ReceiptState.HELD for item in queued):
            is_single = len(queued) == 1
            count, them = ("1 queued message is", "it") if is_single else (f"{len(queued)} queued messages are", "them")
            await self._outbox.send_text(f"stop:{key}", ON_HOLD.format(count, them, them))

    async def _handle_message(
        self, message: IncomingMessage, known: Collection[str] | None, *, is_stopped: bool, is_retry: bool
    ) -> Receipt | None:
        message_id = self._route.session_message_id(message.id)
        if is_retry and await self.was_answer(message_id):
            await self._outbox.send_text(f"cut:{message_id}", ANSWER_INTERRUPTED.format(message.text))
            return None
        if is_retry and await self._ledger.find_sent(self._route.address, f"invalid:{message_id}"):
            return None  # an earlier process refused it
        is_message = is_stopped or bool(message.attachments)
        if is_retry and not is_message:
            is_message = await self._route.session.has_message(message_id)  # accepted as a message before

        def find_answer(text: str) -> AnswerResult:
            answerable = {asked.question for asked in self._route.session.open_questions()}
            return None if is_message else self._questions.find_answer(text, message, answerable, known)

        meaning = self._route.session.interpret(message.text, find_answer)
        author = message.author.name or message.author.id
        if isinstance(meaning, AnswerMeaning):
            self._questions.record_answer(meaning.question, meaning.text, author)
            meaning = await self._give_answer(meaning, message.id)
            if meaning is None:
                return None
        if isinstance(meaning, InvalidAnswerMeaning):
            await self._outbox.send_text(f"invalid:{message_id}", meaning.reason)
            return None
        text = _add_quote(message, meaning)
        # Nothing was awaited since the ingress queue, so a stop takes effect before this point or in the session.
        return await self._route.session.say(
            text, id=message_id, author=author, attachments=message.attachments, is_stopped=is_stopped
        )

    async def _give_answer(self, answer: AnswerMeaning, message: str) -> InvalidAnswerMeaning | None:
        """Record and submit an answer, so that its text never becomes a message. Return the reason if it is refused."""
        message_id, durable = self._route.session_message_id(message), self._questions.durable_event(answer.question)
        await self._ledger.begin_send(self._route.address, f"answer:{message_id}")
        refusal = await self._route.session.answer(answer.question, answer.text)
        if refusal is None:
            self._unsettled_answers[message.partition(ID_RANGE)[0]] = durable
            return None
        await self._ledger.mark_sent(self._route.address, f"answer:{message_id}", "not asked")
        return InvalidAnswerMeaning(refusal.message)

    async def was_answer(self, message_id: str) -> bool:
        """Return whether an earlier process used this message as an answer. The asking turn ended with that process."""
        known = await self._ledger.find_sent(self._route.address, f"answer:{message_id}")
        return known is not None and not known.id

    async def _handle_deletion(self, removed: MessageDeleted) -> None:
        """Withdraw a queued message, or remove the deleted part from it."""
        message_id, text = self.merged.text_after(removed)
        if text is None:
            await self._route.session.withdraw(self._route.session_message_id(message_id))
        else:
            await self._route.session.edit(self._route.session_message_id(message_id), text)

    async def _handle_edit(self, edit: MessageEdited, *, is_retry: bool) -> None:
        """Edit a queued message. If the message is already running, offer a button that steers with the new text.

        The button is also offered if a restart processed the message before the edit could be applied.
        """
        session = self._route.session
        message_id, text = self.merged.text_after(edit)
        refusal = await session.edit(self._route.session_message_id(message_id), text or "")
        if refusal is None or not (session.running_turn() or is_retry):
            return
        if is_retry and await self._model_has_seen(self._route.session_message_id(message_id), text or ""):
            return  # The edit was applied before the restart; only its completion was not recorded.
        key = f"{edit.id}:{zlib.crc32(edit.text.encode()):x}"
        await self._ledger.save_action(self._route.address, key, edit.text)
        await self._outbox.send(
            f"edit:{key}", OutgoingMessage(ALREADY_STARTED, (Button(STEER_LABEL, f"steer:{key}"),), edit.id)
        )

    async def _model_has_seen(self, message_id: str, text: str) -> bool:
        """Return whether the transcript has a message with this id that contains the text."""
        messages = (await self._route.session.history()).messages
        return any(isinstance(item, UserMessage) and item.id == message_id and text in item.text for item in messages)

    async def _handle_press(self, pressed: ButtonPressed) -> None:
        kind, _, argument = pressed.value.partition(":")
        session, author = self._route.session, pressed.author.name or pressed.author.id
        if kind == "answer":
            question, _, position = argument.rpartition(":")
            choice = self._questions.choice_at(question, position)
            self._questions.record_answer(question, choice or "", author)
            if choice is None or await session.answer(question, choice) is not None:
                await self._outbox.send_text(f"press:{pressed.id}", QUESTION_CLOSED)
        elif kind == "steer":
            text = await self._ledger.find_action(self._route.address, argument)
            if text:
                await session.say(text, Delivery.STEER, id=self._route.derived_id(f"edit:{argument}"), author=author)
            else:
                await self._outbox.send_text(f"press:{pressed.id}", BUTTON_EXPIRED)
        elif kind == "continue":
            await session.say(f"/continue {argument}", id=self._route.derived_id(f"press:{pressed.id}"), author=author)


def _add_quote(message: IncomingMessage, meaning: Meaning) -> str:
    """Return a message's text after the text that it replies to. A slash command stays at the beginning."""
    if not message.quoted or not isinstance(meaning, MessageMeaning):
        return message.text
    prefix = f"/{meaning.delivery} " if meaning.delivery else ""
    return f"{prefix}[In reply to: {message.quoted[:QUOTED_CHARACTERS]}]\n{meaning.text}"
