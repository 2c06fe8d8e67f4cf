"""Text for Discord and from it."""

from hark.surfaces.discord.markup import readable, shown


def test_unsupported_markdown_is_rewritten_for_discord() -> None:
    text = "#### Small\n---\n- [ ] one\n- [x] two\n\n![cat](http://a/b.png)"
    assert shown(text, 2000) == "**Small**\n———\n- ☐ one\n- ☑ two\n\n[cat](http://a/b.png)"


def test_a_table_becomes_a_code_block() -> None:
    text = "so:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nthen"
    assert shown(text, 2000) == "so:\n\n```\na │ b\n──┼──\n1 │ 2\n```\n\nthen"
    assert shown("| a |", 2000) == "| a |"


def test_code_is_left_as_it_is() -> None:
    text = "```md\n#### x\n| a |\n---\n```\n`![a](b)`"
    assert shown(text, 2000) == text
    assert shown("~~~\n```\n---\n~~~", 2000) == "```\n`\u200b`\u200b`\n---\n```"
    assert shown("``a ` b``", 2000) == "`` a ` b ``"


def test_text_that_is_no_markdown_stays_text_on_discord() -> None:
    assert shown("\\# no\n\\- no\n1986\\. A year\n\\> no", 2000) == "\\# no\n\\- no\n1986\\. A year\n\\> no"
    assert shown("2 * 3, a_b_c, \\_x\\_ ||y||", 2000) == "2 * 3, a_b_c, \\_x\\_ \\||y\\||"
    assert shown("https://a.b/x_y_?z=*", 2000) == "https://a.b/x_y_?z=*"
    assert shown("\\[a\\](https://b.c)", 2000) == "[a]\\(https://b.c)"


def test_it_never_gets_longer_than_allowed() -> None:
    text = "\\*" * 50
    assert shown(text, 100) == text
    assert shown("x" * 101, 100) == "x" * 99 + "…"
    assert shown(" \n ", 100) == "…"


def test_mentions_are_names_and_ours_at_the_beginning_is_left_out() -> None:
    names = {"1": "Ann", "2": "general", "9": "Hark"}
    assert readable("<@9> ask <@!1> in <#2> <:wave:55>", names, "9") == "ask @Ann in #general :wave:"
    assert readable("what does <@9> think, <@7>?", names, "9") == "what does @Hark think, <@7>?"
