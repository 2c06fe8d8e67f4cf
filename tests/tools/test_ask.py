"""The tool that asks a person."""

from pathlib import Path

from hark.protocol.messages import Effect
from hark.protocol.tool import Question, ToolOutput
from hark.tools.ask import Ask
from tests.tools.context import FakeContext


async def test_the_answer_is_the_result(tmp_path: Path) -> None:
    context = FakeContext(tmp_path, answer="blue")
    output = await Ask().run({"question": "Which colour?", "choices": ["red", "blue"]}, context)
    assert output == ToolOutput("blue")
    assert context.questions == [Question("Which colour?", ("red", "blue"))]
    assert not Ask().spec.is_changing


async def test_without_a_person_it_says_so(tmp_path: Path) -> None:
    output = await Ask().run({"question": "Which colour?"}, FakeContext(tmp_path))
    assert output.is_error
    assert output.text.startswith("Nobody can answer in this session.")


async def test_a_question_without_words_is_not_asked(tmp_path: Path) -> None:
    context = FakeContext(tmp_path, answer="what?")
    output = await Ask().run({"choices": ["yes"]}, context)
    assert output == ToolOutput("ask needs question: call it again with it.", is_error=True, effect=Effect.NOT_STARTED)
    assert context.questions == []
