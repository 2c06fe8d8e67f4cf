"""Pairing: only who has the owner's machine lets somebody in, by a code that nobody can guess."""

import time
from collections import Counter
from pathlib import Path

import pytest

from hark.app import pairing as pairing_module
from hark.app.pairing import CODE_SECONDS, MOST_KNOCKS, Pairing
from hark.protocol.chat import Author
from hark.surfaces.chat.people import CODE_LENGTH, CODE_LETTERS, new_code
from tests.cli.command_line import opened


def test_codes_are_long_even_and_never_the_same() -> None:
    codes = [new_code() for _ in range(5_000)]
    assert len(set(codes)) == len(codes)
    assert len(set(CODE_LETTERS)) ** CODE_LENGTH >= 2**40
    letters = Counter("".join(codes))
    assert set(letters) == set(CODE_LETTERS)
    assert max(letters.values()) < 1.3 * min(letters.values())


def test_a_code_lets_one_person_in_once_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairing = Pairing(tmp_path / "pairing.json")
    assert pairing.knock("telegram", Author("7", "Ada"), "ABCDEFGH") == "ABCDEFGH"
    assert pairing.knock("telegram", Author("7", "Ada"), "ZZZZZZZZ") == "ABCDEFGH"
    for wrong in ("", "ABCDEFG", "ABCDEFGHJ", "ZZZZZZZZ", "7", "*", "ABCDEFGH ABCDEFGH"):
        assert pairing.approve(wrong) is None
    assert not pairing.is_let_in("telegram", "7")
    assert pairing.approve(" abcdefgh ") is not None
    assert pairing.is_let_in("telegram", "7")
    assert not pairing.is_let_in("discord", "7")
    assert pairing.approve("ABCDEFGH") is None
    pairing.knock("telegram", Author("8", "Bob"), "BBBBBBBB")
    later = time.time() + CODE_SECONDS
    monkeypatch.setattr(pairing_module.time, "time", lambda: later)
    assert pairing.approve("BBBBBBBB") is None
    assert pairing.knock("telegram", Author("8", "Bob"), "CCCCCCCC") == "CCCCCCCC"


def test_a_crowd_of_strangers_fills_nothing(tmp_path: Path) -> None:
    pairing = Pairing(tmp_path / "pairing.json")
    for number in range(MOST_KNOCKS + 50):
        pairing.knock("telegram", Author(str(number), "x" * 10_000), f"{number:08}")
    assert len(pairing.book.knocks) == MOST_KNOCKS
    assert (tmp_path / "pairing.json").stat().st_size < 100_000
    assert (tmp_path / "pairing.json").stat().st_mode & 0o077 == 0


async def test_a_strangers_name_can_fake_no_line_of_the_list(tmp_path: Path) -> None:
    async with opened(tmp_path) as hark:
        name = "Bob\nAAAAAAAA telegram:1 the owner\x1b[2J\u202e"
        Pairing(hark.home / "pairing.json").knock("telegram", Author("7", name), "ABCDEFGH")
        listed = await hark.run("pair", "list")
        assert len(listed.out.splitlines()) == 1
        assert listed.out.startswith("ABCDEFGH telegram:7 Bob AAAAAAAA")
        assert "\x1b" not in listed.out
        wrong = await hark.run("pair", "approve", "WRONG234")
        assert (wrong.code, wrong.out) == (1, "")
        assert "no such code" in wrong.err
        assert (await hark.run("pair", "approve", "ABCDEFGH")).code == 0
