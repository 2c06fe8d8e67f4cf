"""Pairing: only the owner of the machine can approve an account, using a code that can't be guessed."""

import time
from collections import Counter
from pathlib import Path

import pytest

from hark.app import pairing as pairing_module
from hark.app.pairing import CODE_SECONDS, MAX_REQUESTS, PairingFile
from hark.protocol.chat import Author
from hark.surfaces.chat.sender_policy import CODE_CHARACTERS, CODE_LENGTH, new_code
from tests.cli.command_line import open_hark


def test_codes_are_long_evenly_distributed_and_unique() -> None:
    codes = [new_code() for _ in range(5_000)]
    assert len(set(codes)) == len(codes)
    assert len(set(CODE_CHARACTERS)) ** CODE_LENGTH >= 2**40
    counts = Counter("".join(codes))
    assert set(counts) == set(CODE_CHARACTERS)
    assert max(counts.values()) < 1.3 * min(counts.values())


def test_a_code_pairs_one_account_once_and_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairing = PairingFile(tmp_path / "pairing.json")
    assert pairing.request_pairing("telegram", Author("7", "Ada"), "ABCDEFGH") == "ABCDEFGH"
    assert pairing.request_pairing("telegram", Author("7", "Ada"), "ZZZZZZZZ") == "ABCDEFGH"
    for wrong in ("", "ABCDEFG", "ABCDEFGHJ", "ZZZZZZZZ", "7", "*", "ABCDEFGH ABCDEFGH"):
        assert pairing.approve(wrong) is None
    assert not pairing.is_paired("telegram", "7")
    assert pairing.approve(" abcdefgh ") is not None
    assert pairing.is_paired("telegram", "7")
    assert not pairing.is_paired("discord", "7")
    assert pairing.approve("ABCDEFGH") is None
    pairing.request_pairing("telegram", Author("8", "Bob"), "BBBBBBBB")
    later = time.time() + CODE_SECONDS
    monkeypatch.setattr(pairing_module.time, "time", lambda: later)
    assert pairing.approve("BBBBBBBB") is None
    assert pairing.request_pairing("telegram", Author("8", "Bob"), "CCCCCCCC") == "CCCCCCCC"


def test_unknown_senders_cannot_exhaust_memory(tmp_path: Path) -> None:
    pairing = PairingFile(tmp_path / "pairing.json")
    for number in range(MAX_REQUESTS + 50):
        pairing.request_pairing("telegram", Author(str(number), "x" * 10_000), f"{number:08}")
    assert len(pairing.records.knocks) == MAX_REQUESTS
    assert (tmp_path / "pairing.json").stat().st_size < 100_000
    assert (tmp_path / "pairing.json").stat().st_mode & 0o077 == 0


async def test_a_senders_name_cannot_forge_lines_in_the_pairing_list(tmp_path: Path) -> None:
    async with open_hark(tmp_path) as hark:
        name = "Bob\nAAAAAAAA telegram:1 the owner\x1b[2J\u202e"
        PairingFile(hark.home / "pairing.json").request_pairing("telegram", Author("7", name), "ABCDEFGH")
        listed = await hark.run("pair", "list")
        assert len(listed.out.splitlines()) == 1
        assert listed.out.startswith("ABCDEFGH telegram:7 Bob AAAAAAAA")
        assert "\x1b" not in listed.out
        wrong = await hark.run("pair", "approve", "WRONG234")
        assert (wrong.code, wrong.out) == (1, "")
        assert "no pending request has this code" in wrong.err
        assert (await hark.run("pair", "approve", "ABCDEFGH")).code == 0


@pytest.mark.parametrize("content", [b"", b"{", b"[]"])
async def test_a_damaged_pairing_file_admits_no_account_and_is_reported(tmp_path: Path, content: bytes) -> None:
    async with open_hark(tmp_path) as hark:
        path = hark.home / "pairing.json"
        pairing = PairingFile(path)
        pairing.request_pairing("telegram", Author("7", "Ada"), "ABCDEFGH")
        assert pairing.approve("ABCDEFGH") is not None
        path.write_bytes(content)
        assert not pairing.is_paired("telegram", "7")
        assert pairing.request_pairing("telegram", Author("7", "Ada"), "BBBBBBBB") == "BBBBBBBB"
        assert pairing.approve("BBBBBBBB") is not None
        assert pairing.is_paired("telegram", "7")
        [aside] = hark.home.glob("pairing.json.*.damaged")
        assert aside.read_bytes() == content
        assert aside.name in (await hark.run("doctor")).out
