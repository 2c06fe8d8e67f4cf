"""Files that came with a message: kept, each once, and nowhere else."""

from pathlib import Path

from hark.app.kept_files import kept
from hark.protocol.messages import Attachment


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
