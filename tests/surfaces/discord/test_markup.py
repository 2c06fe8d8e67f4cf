"""Text for Discord and from it."""

from hark.surfaces.discord.files import safe_name
from hark.surfaces.discord.markup import readable, shown


def test_what_discord_does_not_show_is_put_otherwise() -> None:
    text = "#### Small\n---\n- [ ] one\n- [x] two\n![cat](http://a/b.png)"
    assert shown(text, 2000) == "**Small**\n──────────\n- ☐ one\n- ☑ two\n[cat](http://a/b.png)"


def test_tables_stand_in_a_fence() -> None:
    text = "so:\n| a | b |\n|---|---|\n| 1 | 2 |\nthen"
    assert shown(text, 2000) == "so:\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n```\nthen"
    assert shown("| a |", 2000) == "```\n| a |\n```"


def test_code_is_left_as_it_is() -> None:
    text = "```md\n#### x\n| a |\n---\n```\n~~~\n```\n---\n~~~\n`![a](b)`"
    assert shown(text, 2000) == text


def test_it_never_gets_longer_than_allowed() -> None:
    row = "| " + "a" * 95 + " |"
    assert shown(row, 100) == row
    assert shown("x" * 101, 100) == "x" * 99 + "…"
    assert shown(" \n ", 100) == "…"


def test_mentions_are_names_and_ours_at_the_beginning_is_left_out() -> None:
    names = {"1": "Ann", "2": "general", "9": "Hark"}
    assert readable("<@9> ask <@!1> in <#2> <:wave:55>", names, "9") == "ask @Ann in #general :wave:"
    assert readable("what does <@9> think, <@7>?", names, "9") == "what does @Hark think, <@7>?"


def test_names_of_files_are_safe() -> None:
    assert safe_name("../../etc/passwd") == "passwd"
    assert safe_name("C:\\x\\..") == "file"
    assert safe_name("\u202e.bashrc\n") == "bashrc"
    assert len(safe_name("a" * 500)) == 100
