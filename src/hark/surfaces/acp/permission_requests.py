"""Questions from a running turn, sent to the editor as permission requests."""

import logging

from acp import Client, RequestError
from acp.schema import AllowedOutcome, PermissionOption, PermissionOptionKind, ToolCallUpdate
from anyio import CancelScope
from anyio.abc import TaskGroup

from hark.protocol.events import QuestionAsked, QuestionClosed
from hark.protocol.session import Session
from hark.protocol.store import StoreError
from hark.protocol.tool import QuestionKind
from hark.surfaces.acp.editor_view import EditorView
from hark.surfaces.acp.tool_calls import fence_text
from hark.surfaces.acp.update_queue import UpdateQueue

NO = "no"
LOG = logging.getLogger(__name__)
CANNOT_ASK = "This editor can't ask for text. Put the question in your reply and end your turn. The user will answer."
_APPROVAL_OPTIONS: dict[str, tuple[str, PermissionOptionKind]] = {
    "yes": ("Allow once", "allow_once"),
    "session": ("Allow in this session", "allow_always"),
    "always": ("Always allow", "allow_always"),
    NO: ("Reject", "reject_once"),
}


class PermissionRequests:
    """Sends questions to the editor's user. When a question closes, its permission request is cancelled."""

    def __init__(self, session: Session, client: Client, updates: UpdateQueue, tasks: TaskGroup) -> None:
        self._session = session
        self._client = client
        self._updates = updates
        self._tasks = tasks
        self._open: dict[str, CancelScope] = {}

    def ask(self, event: QuestionAsked, view: EditorView) -> None:
        """Send a question to the editor. Never waits."""
        self._open[event.question] = CancelScope()
        self._tasks.start_soon(self._ask_editor, event, view)

    def close(self, event: QuestionClosed) -> None:
        """Cancel the permission request for a question that was answered or withdrawn. A later answer has no effect."""
        scope = self._open.pop(event.question, None)
        if scope is not None:
            scope.cancel()

    async def _ask_editor(self, event: QuestionAsked, view: EditorView) -> None:
        scope = self._open.get(event.question)
        if scope is None:
            return
        with scope:
            answer = await self._request_answer(event, view)
            try:
                if answer is None:
                    await self._session.interrupt("user", event.turn or "")
                else:
                    await self._session.answer(event.question, answer)
            except StoreError as error:  # another process owns the question and can't be reached
                LOG.warning("could not send an answer in session %s: %s", self._session.id, error)

    async def _request_answer(self, event: QuestionAsked, view: EditorView) -> str | None:
        """Return the answer, or None if the user cancelled, in which case the caller interrupts the turn."""
        is_approval = event.kind is QuestionKind.APPROVAL
        if not event.choices and not is_approval:
            return CANNOT_ASK
        call = view.get_asked_call(event.call or event.question).permission_update()
        _add_question_text(call, event.text, is_approval=is_approval)
        await self._updates.wait_until_sent()
        try:
            options = _build_options(event.choices, is_approval=is_approval)
            response = await self._client.request_permission(
                session_id=self._session.id, tool_call=call, options=options
            )
        except ConnectionError:
            return None
        except (RequestError, ValueError) as error:  # ValueError: the response is invalid
            return NO if is_approval else f"The editor could not ask the question: {error}"
        outcome = response.outcome
        if not isinstance(outcome, AllowedOutcome):
            return None
        return _choice_for_option(outcome.option_id, event.choices, is_approval=is_approval)


def _add_question_text(call: ToolCallUpdate, text: str, *, is_approval: bool) -> None:
    """Add the question's text to the call, without the first line of an approval, which the call already shows."""
    if not is_approval:
        call.title = text
        return
    _, _, reasons = text.partition("\n")
    if reasons:
        call.content = [*(call.content or ()), fence_text(reasons)]


def _build_options(choices: tuple[str, ...], *, is_approval: bool) -> list[PermissionOption]:
    if is_approval:
        options = [(choice, *_APPROVAL_OPTIONS.get(choice, (choice, "allow_once"))) for choice in choices]
        return [PermissionOption(option_id=choice, name=name, kind=kind) for choice, name, kind in options]
    return [
        PermissionOption(option_id=str(number), name=choice, kind="allow_once")
        for number, choice in enumerate(choices, 1)
    ]


def _choice_for_option(option: str, choices: tuple[str, ...], *, is_approval: bool) -> str:
    """Return the choice with this option id. An approval with an unknown id is rejected."""
    if is_approval:
        return option if option in choices else NO
    return choices[int(option) - 1] if option.isdecimal() and 1 <= int(option) <= len(choices) else option
