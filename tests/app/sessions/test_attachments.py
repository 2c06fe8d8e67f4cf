"""Files that came with a message: kept, each once, and nowhere else."""

from pathlib import Path

import pytest

from hark.app.sessions.attachments import kept
from hark.protocol.messages import Attachment
from hark.protocol.store import StoreError


def test_a_picture_stays_as_it_is(tmp_path: Path) -> None:
    picture = Attachment("image/png", "a.png", "aGFyaw==")
    assert kept(tmp_path, "demo", "m1", picture) is picture


def test_a_file_is_kept_once_and_others_of_its_name_beside_it(tmp_path: Path) -> None:
    one, two = Attachment("text/csv", "t.csv", "YSxi"), Attachment("text/csv", "t.csv", "Yyxk")
    paths = [kept(tmp_path, "demo", "m1", file).path for file in (one, two, one)]
    assert paths[0] == paths[2] != paths[1]
    assert [Path(path).read_text() for path in paths] == ["a,b", "c,d", "a,b"]


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    for session, message, name in (
        ("..", "..", "../../x"),
        (".", "/", "/etc/passwd"),
        ("a", "b", ".bashrc"),
        ("a", "b", ""),
    ):
        path = Path(kept(tmp_path, session, message, Attachment("text/plain", name, "YSxi")).path)
        assert path.resolve().is_relative_to(tmp_path / "attachments")
        assert not path.name.startswith(".")


def test_names_of_any_length_and_script_are_kept_apart(tmp_path: Path) -> None:
    file = Attachment("text/plain", "名" * 200, "YSxi")
    names = ("語" * 100, "語" * 99, "a/b", "a:b", "a_b", "...", "....")
    paths = [kept(tmp_path, session, message, file).path for session in ("s:1", "s_1") for message in names]
    assert len({Path(path).parent for path in paths}) == 2 * len(names)
    assert all(Path(path).read_text() == "a,b" for path in paths)


def test_a_folder_in_the_place_of_a_file_is_no_trouble(tmp_path: Path) -> None:
    path = Path(kept(tmp_path, "demo", "m1", Attachment("text/plain", "x", "YSxi")).path)
    (path.parent / "y").mkdir()
    assert Path(kept(tmp_path, "demo", "m1", Attachment("text/plain", "y", "YSxi")).path).name == "2-y"


def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = Path(kept(tmp_path, "demo", "m1", Attachment("text/plain", "x", "YSxi")).path).parent
    (folder / "link").symlink_to(elsewhere / "made")
    assert Path(kept(tmp_path, "demo", "m1", Attachment("text/plain", "link", "YSxi")).path).name == "2-link"
    (folder.parent / "m2").symlink_to(elsewhere)
    with pytest.raises(StoreError, match="leads elsewhere"):
        kept(tmp_path, "demo", "m2", Attachment("text/plain", "x", "YSxi"))
    assert list(elsewhere.iterdir()) == []
