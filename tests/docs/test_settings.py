"""`hark config check` accepts every settings example in the documentation."""

import re
from pathlib import Path

import pytest

from hark.app.settings.check import check_settings
from hark.app.settings.config import load
from tests.docs.pages import ROOT, code_blocks, pages

EXAMPLES = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}-{number}")
    for page in pages()
    for number, code in enumerate(code_blocks(page, "toml"), 1)
]
_VARIABLE = re.compile(r'\w*_env = "(\w+)"')


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_settings_example_is_valid(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLE.findall(example):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("TRACKER_TOKEN", "secret")
    (tmp_path / "config.toml").write_text(example)
    assert list(check_settings(load(tmp_path, tmp_path)).errors) == []
