"""Attachments are stored once, and never outside their folder."""

from pathlib import Path

import pytest

from hark.app.sessions.attachments import store_attachment
from hark.protocol.messages import Attachment
from hark.protocol.store import StoreError


def test_an_image_attachment_is_returned_unchanged(tmp_path: Path) -> None:
    picture = Attachment("image/png", "a.png", "aGFyaw==")
    assert store_attachment(tmp_path, "demo", "m1", picture) is picture


def test_identical_files_are_stored_once_and_different_files_with_the_same_name_separately(tmp_path: Path) -> None:
    one, two = Attachment("text/csv", "t.csv", "YSxi"), Attachment("text/csv", "t.csv", "Yyxk")
    paths = [store_attachment(tmp_path, "demo", "m1", file).path for file in (one, two, one)]
    assert paths[0] == paths[2] != paths[1]
    assert [Path(path).read_text() for path in paths] == ["a,b", "c,d", "a,b"]


def test_no_attachment_name_escapes_the_attachments_folder(tmp_path: Path) -> None:
    for session, message, name in (
        ("..", "..", "../../x"),
        (".", "/", "/etc/passwd"),
        ("a", "b", ".bashrc"),
        ("a", "b", ""),
    ):
        path = Path(store_attachment(tmp_path, session, message, Attachment("text/plain", name, "YSxi")).path)
        assert path.resolve().is_relative_to(tmp_path / "attachments")
        assert not path.name.startswith(".")


def test_long_and_non_latin_names_get_different_folders(tmp_path: Path) -> None:
    file = Attachment("text/plain", "名" * 200, "YSxi")
    names = ("語" * 100, "語" * 99, "a/b", "a:b", "a_b", "...", "....")
    paths = [store_attachment(tmp_path, session, message, file).path for session in ("s:1", "s_1") for message in names]
    assert len({Path(path).parent for path in paths}) == 2 * len(names)
    assert all(Path(path).read_text() == "a,b" for path in paths)


def test_an_attachment_is_renamed_if_a_folder_already_has_its_name(tmp_path: Path) -> None:
    path = Path(store_attachment(tmp_path, "demo", "m1", Attachment("text/plain", "x", "YSxi")).path)
    (path.parent / "y").mkdir()
    assert Path(store_attachment(tmp_path, "demo", "m1", Attachment("text/plain", "y", "YSxi")).path).name == "2-y"


def test_storing_an_attachment_does_not_follow_symbolic_links(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = Path(store_attachment(tmp_path, "demo", "m1", Attachment("text/plain", "x", "YSxi")).path).parent
    (folder / "link").symlink_to(elsewhere / "made")
    assert (
        Path(store_attachment(tmp_path, "demo", "m1", Attachment("text/plain", "link", "YSxi")).path).name == "2-link"
    )
    (folder.parent / "m2").symlink_to(elsewhere)
    with pytest.raises(StoreError, match="is a link to another location"):
        store_attachment(tmp_path, "demo", "m2", Attachment("text/plain", "x", "YSxi"))
    assert list(elsewhere.iterdir()) == []
