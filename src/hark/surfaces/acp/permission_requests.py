"""Questions of a running turn, as permission requests."""

import logging

from acp import Client, RequestError
from acp.schema import AllowedOutcome, PermissionOption, PermissionOptionKind, ToolCallUpdate
from anyio import CancelScope
from anyio.abc import TaskGroup

from hark.protocol.events import QuestionAsked, QuestionClosed
from hark.protocol.session import Session
from hark.protocol.store import StoreError
from hark.protocol.tool import QuestionKind
from hark.surfaces.acp.tool_calls import fenced
from hark.surfaces.acp.update_queue import UpdateQueue
from hark.surfaces.acp.view import View

NO = "no"
LOG = logging.getLogger(__name__)
CANNOT_ASK = "This editor can't ask for words. Put the question in your reply and end your turn: the answer comes next."
_APPROVALS: dict[str, tuple[str, PermissionOptionKind]] = {
    "yes": ("Allow once", "allow_once"),
    "session": ("Allow in this session", "allow_always"),
    "always": ("Always allow", "allow_always"),
    NO: ("Reject", "reject_once"),
}


class PermissionRequests:
    """Asks the editor's person; a question that is closed is asked no longer."""

    def __init__(self, session: Session, client: Client, outbox: UpdateQueue, tasks: TaskGroup) -> None:
        self._session = session
        self._client = client
        self._outbox = outbox
        self._tasks = tasks
        self._open: dict[str, CancelScope] = {}

    def ask(self, event: QuestionAsked, view: View) -> None:
        """Ask; never waits."""
        self._open[event.question] = CancelScope()
        self._tasks.start_soon(self._ask, event, view)

    def close(self, event: QuestionClosed) -> None:
        """The question is answered or withdrawn: whatever the editor still says of it has no effect."""
        scope = self._open.pop(event.question, None)
        if scope is not None:
            scope.cancel()

    async def _ask(self, event: QuestionAsked, view: View) -> None:
        scope = self._open.get(event.question)
        if scope is None:
            return
        with scope:
            answer = await self._answer(event, view)
            try:
                if answer is None:
                    await self._session.interrupt("user", event.turn or "")
                else:
                    await self._session.answer(event.question, answer)
            except StoreError as error:  # the question is another process's, and that can't be told
                LOG.warning("an answer in session %s could not be told: %s", self._session.id, error)

    async def _answer(self, event: QuestionAsked, view: View) -> str | None:
        """Return the answer; None when the person has none, which ends the turn: it must not go on by itself."""
        is_approval = event.kind is QuestionKind.APPROVAL
        if not event.choices and not is_approval:
            return CANNOT_ASK
        call = view.ask_about(event.call or event.question).asked()
        _word(call, event.text, is_approval=is_approval)
        await self._outbox.flushed()
        try:
            options = _options(event.choices, is_approval=is_approval)
            response = await self._client.request_permission(
                session_id=self._session.id, tool_call=call, options=options
            )
        except ConnectionError:
            return None
        except (RequestError, ValueError) as error:  # ValueError: an answer that is none
            return NO if is_approval else f"The editor could not ask: {error}"
        outcome = response.outcome
        if not isinstance(outcome, AllowedOutcome):
            return None
        return _chosen(outcome.option_id, event.choices, is_approval=is_approval)


def _word(call: ToolCallUpdate, text: str, *, is_approval: bool) -> None:
    """Put the question's words where a person sees them. An approval's first line is what the call shows anyway."""
    if not is_approval:
        call.title = text
        return
    _, _, reasons = text.partition("\n")
    if reasons:
        call.content = [*(call.content or ()), fenced(reasons)]


def _options(choices: tuple[str, ...], *, is_approval: bool) -> list[PermissionOption]:
    if is_approval:
        named = [(choice, *_APPROVALS.get(choice, (choice, "allow_once"))) for choice in choices]
        return [PermissionOption(option_id=choice, name=name, kind=kind) for choice, name, kind in named]
    return [
        PermissionOption(option_id=str(number), name=choice, kind="allow_once")
        for number, choice in enumerate(choices, 1)
    ]


def _chosen(option: str, choices: tuple[str, ...], *, is_approval: bool) -> str:
    """Return the choice that was meant; an approval that is none of them is a no."""
    if is_approval:
        return option if option in choices else NO
    return choices[int(option) - 1] if option.isdecimal() and 1 <= int(option) <= len(choices) else option
