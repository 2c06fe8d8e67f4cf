"""A damaged JSON file is set aside and reported, and the program continues without it."""

from pathlib import Path

import pytest

from hark.disk.stored_json import damaged_files_notice, read_json


def test_a_file_is_decoded_and_none_is_returned_for_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"x": 1}')
    assert read_json(tmp_path / "a.json", dict[str, int]) == {"x": 1}
    assert read_json(tmp_path / "b.json", dict[str, int]) is None
    assert damaged_files_notice(tmp_path) == ""


@pytest.mark.parametrize("content", [b"", b"{", b'{"x": "text"}', b"\xff\xfe", b"\0" * 40])
def test_a_damaged_file_is_set_aside_with_its_content_and_named_in_the_notice(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert read_json(path, dict[str, int]) is None
    [aside] = tmp_path.iterdir()
    assert aside.read_bytes() == content
    assert aside.name in damaged_files_notice(tmp_path)
