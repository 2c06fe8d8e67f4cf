"""Prints the text of a document from standard input. Runs as a separate program, so that it can be limited and killed.

The text is followed by a NUL and, if not all of it could be read, by the reason.
"""

import contextlib
import io
import json
import logging
import resource
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

from hark.text.terminal_emulator import resolve_terminal_text

MAX_MEMORY_BYTES = 2 * 1024**3
MAX_UNPACKED_BYTES = 300_000_000


def main(kind: str) -> int:
    """Print the text of a document of this kind."""
    logging.disable()
    sys.excepthook = _print_error
    with contextlib.suppress(OSError, ValueError):  # some systems have no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    content = io.BytesIO(sys.stdin.buffer.read())
    if kind not in ("pdf", "ipynb"):
        with zipfile.ZipFile(content) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MAX_UNPACKED_BYTES:
            raise ValueError(f"it unpacks to {size:,} bytes; the limit is {MAX_UNPACKED_BYTES:,}")
    for text in _READERS[kind](content):
        _print(f"{text}\n".replace("\0", "␀"))
    _print("\0")
    return 0


def _print(text: str) -> None:
    sys.stdout.buffer.write(text.encode(errors="replace"))
    sys.stdout.flush()


def _print_error(_: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
    if isinstance(error, ImportError):
        _print(f"\0{error.name} is not installed. Run: pip install 'hark-agent[documents]'")
    elif isinstance(error, MemoryError):
        _print(f"\0it needs more than {MAX_MEMORY_BYTES >> 30} GB of memory")
    else:
        _print(f"\0{error}" if isinstance(error, ValueError) else f"\0{type(error).__name__}: {error}")


def _read_pdf(file: io.BytesIO) -> Iterator[str]:
    from pypdf import PdfReader

    reader = PdfReader(file)
    if reader.is_encrypted and not reader.decrypt(""):
        raise ValueError("it is encrypted. Ask the user for a copy without a password")
    for number, page in enumerate(reader.pages, 1):
        yield f"[page {number} of {len(reader.pages)}]"
        yield page.extract_text() or "[no text; the page may be a scanned image]"


def _read_notebook(file: io.BytesIO) -> Iterator[str]:
    for number, cell in enumerate(json.load(file)["cells"], 1):
        yield f"[cell {number}: {cell['cell_type']}]"
        yield "".join(cell["source"])
        for output in cell.get("outputs", ()):
            yield f"[output of cell {number}]"
            yield resolve_terminal_text(_output_text(output)).rstrip("\n")


def _output_text(output: dict[str, Any]) -> str:
    if "traceback" in output:
        return "\n".join(output["traceback"])
    data = output.get("data", {"text/plain": output.get("text", "")})
    return "".join(data["text/plain"]) if "text/plain" in data else f"[{', '.join(data)}]"


def _read_docx(file: io.BytesIO) -> Iterator[str]:
    from docx import Document
    from docx.table import Table

    for block in Document(file).iter_inner_content():
        if isinstance(block, Table):
            yield from (_format_row(cell.text for cell in row.cells) for row in block.rows)
        else:
            yield block.text


def _read_xlsx(file: io.BytesIO) -> Iterator[str]:
    from openpyxl import load_workbook

    # A formula whose value was never stored is shown itself.
    values, formulas = (load_workbook(file, read_only=True, data_only=is_value) for is_value in (True, False))
    for sheet, formula_sheet in zip(values.worksheets, formulas.worksheets, strict=True):
        yield f"[sheet {sheet.title}]"
        sheet.reset_dimensions()  # a file may declare a million empty rows
        formula_sheet.reset_dimensions()
        for number, rows in enumerate(zip(sheet.values, formula_sheet.values, strict=True), 1):
            cells = [formula if value is None else value for value, formula in zip(*rows, strict=True)]
            if any(cell is not None for cell in cells):
                yield _format_row([f"row {number}", *("" if cell is None else str(cell) for cell in cells)])


def _read_pptx(file: io.BytesIO) -> Iterator[str]:
    from pptx import Presentation

    slides = Presentation(file).slides
    for number, slide in enumerate(slides, 1):
        yield f"[slide {number} of {len(slides)}]"
        yield from _shape_texts(slide.shapes)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame:
            yield f"[notes] {slide.notes_slide.notes_text_frame.text}"


def _shape_texts(shapes: Iterable[Any]) -> Iterator[str]:
    from pptx.shapes.group import GroupShape

    for shape in shapes:
        if isinstance(shape, GroupShape):
            yield from _shape_texts(shape.shapes)
        elif shape.has_table:
            yield from (_format_row(cell.text for cell in row.cells) for row in shape.table.rows)
        elif shape.has_text_frame and shape.text_frame.text:
            yield shape.text_frame.text


def _format_row(cells: Iterable[str]) -> str:
    return " | ".join(cell.replace("\n", " ") for cell in cells)


_READERS: dict[str, Callable[[io.BytesIO], Iterator[str]]] = {
    "pdf": _read_pdf,
    "ipynb": _read_notebook,
    "docx": _read_docx,
    "xlsx": _read_xlsx,
    "pptx": _read_pptx,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
