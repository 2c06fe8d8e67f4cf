"""The `read` tool returns the text of PDFs, notebooks and office files, in bounded time and memory."""

import asyncio
import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from pptx.util import Pt
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from hark.processes.cookies import current_owner
from hark.protocol.tool import ToolOutput
from hark.tools.files.edit import EditTool
from hark.tools.files.last_reads import LastReads
from hark.tools.files.read import ReadTool
from tests.tools.fake_context import FakeContext, call_tool, find_processes
from tests.waiting import until


async def read(root: Path, path: str, **arguments: Any) -> ToolOutput:
    return await call_tool(ReadTool(LastReads()), {"path": path, **arguments}, FakeContext(root))


async def read_lines(root: Path, path: str) -> list[str]:
    """Return the lines of a document without their numbers."""
    output = await read(root, path)
    assert not output.is_error, output.text
    return [line.partition("\t")[2] or line for line in output.text.split("\n")]


def write_pdf(path: Path, pages: list[str], password: str = "") -> None:
    writer = PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    for text in pages:
        page = writer.add_blank_page(200, 200)
        names = DictionaryObject({NameObject(key): NameObject(value) for key, value in font.items()})
        fonts = DictionaryObject({NameObject("/F1"): names})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = content
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)


async def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", ["first page", "", "third page"])
    assert await read_lines(tmp_path, "a.pdf") == [
        *("[page 1 of 3]", "first page", "[page 2 of 3]", "[no text; the page may be a scanned image]"),
        *("[page 3 of 3]", "third page"),
    ]
    output = await read(tmp_path, "a.pdf", offset=5, limit=1)
    assert output.text.startswith("     5\t[page 3 of 3]\n[lines 5 to 5; the file continues, ")
    assert output.text.endswith("continue with offset 6]")
    assert (await read(tmp_path, "a.pdf", offset=7)).text == "The file has 6 lines; offset 7 is past its end."


async def test_a_pdf_is_recognized_by_its_content(tmp_path: Path) -> None:
    write_pdf(tmp_path / "paper", ["text"])
    assert await read_lines(tmp_path, "paper") == ["[page 1 of 1]", "text"]


async def test_a_pdf_that_can_not_be_read_causes_an_error_with_the_reason(tmp_path: Path) -> None:
    write_pdf(tmp_path / "secret.pdf", ["text"], "password")
    write_pdf(tmp_path / "open.pdf", ["text"])
    (tmp_path / "cut.pdf").write_bytes((tmp_path / "open.pdf").read_bytes()[:30])
    assert (await read(tmp_path, "secret.pdf")).text == (
        "secret.pdf can't be read as text: it is encrypted. Ask the user for a copy without a password."
    )
    output = await read(tmp_path, "cut.pdf")
    assert output.is_error
    assert output.text.startswith("cut.pdf can't be read as text: Pdf")


NOTEBOOK: dict[str, Any] = {
    "cells": [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "source": "print(1)\n1/0",
            "outputs": [
                {"output_type": "stream", "text": ["10%\r", "100%\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["42"], "text/html": "<b>42</b>"}},
                {"output_type": "display_data", "data": {"image/png": "aGVsbG8="}},
                {"output_type": "error", "traceback": ["\x1b[31mZeroDivisionError\x1b[0m", "line 2"]},
            ],
        },
        {"cell_type": "code", "source": [], "outputs": []},
    ]
}


async def test_a_notebook_is_read_cell_by_cell_with_outputs(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(json.dumps(NOTEBOOK))
    assert await read_lines(tmp_path, "a.ipynb") == [
        *("[cell 1: markdown]", "# Title", "text", "[cell 2: code]", "print(1)", "1/0"),
        *("[output of cell 2]", "100%", "[output of cell 2]", "42", "[output of cell 2]", "[image/png]"),
        *("[output of cell 2]", "ZeroDivisionError", "line 2", "[cell 3: code]", "    17\t"),
        "[the text of a notebook; edit and patch change its JSON, which the shell shows]",
    ]


INVALID_NOTEBOOKS = [
    '{"a": 1}',
    '{"cells": [1]}',
    '{"cells": [{"cell_type": "raw", "source": "x"}, 1]}',
    "{broken",
    "plain",
]


@pytest.mark.parametrize("content", INVALID_NOTEBOOKS)
async def test_a_file_that_is_not_a_valid_notebook_is_read_as_text(content: str, tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text(content + "\n")
    assert (await read(tmp_path, "a.ipynb")).text == f"     1\t{content}"


async def test_office_files_are_read_as_text(tmp_path: Path) -> None:
    document = docx.Document()
    document.add_heading("Title")
    document.add_paragraph("before")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "two\nlines"
    document.add_paragraph("after")
    document.save(str(tmp_path / "a.docx"))
    assert await read_lines(tmp_path, "a.docx") == ["Title", "before", "left | two lines", "after"]

    workbook = openpyxl.Workbook()
    sheet = workbook.worksheets[0]
    sheet.title = "Costs"
    sheet["A1"], sheet["B1"], sheet["B3"], sheet["C3"] = "name", 1.5, "=SUM(B1:B2)", 0
    workbook.create_sheet("Empty")
    workbook.save(tmp_path / "a.xlsx")
    assert await read_lines(tmp_path, "a.xlsx") == [
        *("[sheet Costs]", "row 1 | name | 1.5", "row 3 |  | =SUM(B1:B2) | 0", "[sheet Empty]"),
    ]

    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[5])
    assert slide.shapes.title
    slide.shapes.title.text = "Topic"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(Pt(0), Pt(0), Pt(9), Pt(9)).text_frame.text = "grouped"
    assert slide.notes_slide.notes_text_frame
    slide.notes_slide.notes_text_frame.text = "say hello"
    presentation.save(str(tmp_path / "a.pptx"))
    assert await read_lines(tmp_path, "a.pptx") == ["[slide 1 of 1]", "Topic", "grouped", "[notes] say hello"]


async def test_an_archive_that_unpacks_to_a_huge_size_is_refused(tmp_path: Path) -> None:
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("word/document.xml", b"x")
    forged = bytearray(content.getvalue())
    at = forged.index(b"PK\x01\x02") + 24  # the size in the archive's directory
    forged[at : at + 4] = (2_000_000_000).to_bytes(4, "little")
    (tmp_path / "a.docx").write_bytes(forged)
    output = await read(tmp_path, "a.docx")
    assert output.text == ("a.docx can't be read as text: it unpacks to 2,000,000,000 bytes; the limit is 300,000,000.")


async def test_a_document_above_the_size_limit_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "a.pdf").open("wb") as file:
        file.write(b"%PDF-1.7\n")
        file.truncate(200_000_000)
    assert "it has 200,000,000 bytes; the limit is 100,000,000" in (await read(tmp_path, "a.pdf")).text


def replace_pypdf(root: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a PDF, and let the program that reads it import this code in place of pypdf."""
    (root / "modules").mkdir()
    (root / "modules" / "pypdf.py").write_text(code)
    (root / "a.pdf").write_bytes(b"%PDF-1.7\n")
    monkeypatch.setenv("PYTHONPATH", str(root / "modules"))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import pypdf_is_missing", "pypdf_is_missing is not installed. Run: pip install 'hark-agent[documents]'."),
        ("bytearray(3 * 1024**3)", "it needs more than 2 GB of memory."),
        ("import os; os.kill(os.getpid(), 9)", "the program that reads it was killed."),
        ("while True: pass", "it takes longer than 2 seconds."),
    ],
)
async def test_a_parser_that_fails_or_hangs_is_reported(
    code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hark.tools.files.documents.TIME_LIMIT_SECONDS", 2.0 if "while" in code else 60.0)
    replace_pypdf(tmp_path, code, monkeypatch)
    output = await read(tmp_path, "a.pdf")
    assert output.is_error
    assert output.text == f"a.pdf can't be read as text: {reason}"


async def test_cancelling_kills_the_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_pypdf(tmp_path, "while True: pass", monkeypatch)
    owner = current_owner(tmp_path)
    tool = ReadTool(LastReads(), owner)
    task = asyncio.create_task(call_tool(tool, {"path": "a.pdf"}, FakeContext(tmp_path)))
    await until(lambda: find_processes(f"{owner.home}:"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not find_processes(f"{owner.home}:")


async def test_a_document_that_fails_in_the_middle_returns_its_first_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "type('Page', (), {'extract_text': lambda self: 'text'})()"
    pages = f"[{page}, None]"
    replace_pypdf(
        tmp_path, f"class PdfReader:\n def __init__(self, _): self.is_encrypted, self.pages = 0, {pages}", monkeypatch
    )
    lines = await read_lines(tmp_path, "a.pdf")
    assert lines[:3] == ["[page 1 of 2]", "text", "[page 2 of 2]"]
    assert lines[3].startswith("[the rest can't be read as text: AttributeError: ")


async def test_documents_are_not_edited_as_text(tmp_path: Path) -> None:
    docx.Document().save(str(tmp_path / "a.docx"))
    write_pdf(tmp_path / "a.pdf", ["text"])
    for path in (tmp_path / "a.docx", tmp_path / "a.pdf"):
        before = path.read_bytes()
        arguments = {"path": path.name, "old": before[:4].decode(), "new": "Q"}
        output = await call_tool(EditTool(LastReads()), arguments, FakeContext(tmp_path))
        assert output.is_error
        assert "binary" in output.text
        assert path.read_bytes() == before
