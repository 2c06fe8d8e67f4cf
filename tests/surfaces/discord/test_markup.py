"""Markdown for Discord, and mentions in messages from Discord."""

from hark.surfaces.discord.markup import replace_mentions, to_discord_markdown


def test_unsupported_markdown_is_rewritten_for_discord() -> None:
    text = "#### Small\n---\n- [ ] one\n- [x] two\n\n![cat](http://a/b.png)"
    assert to_discord_markdown(text, 2000) == "**Small**\n———\n- ☐ one\n- ☑ two\n\n[cat](http://a/b.png)"


def test_a_table_becomes_a_code_block() -> None:
    text = "so:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nthen"
    assert to_discord_markdown(text, 2000) == "so:\n\n```\na │ b\n──┼──\n1 │ 2\n```\n\nthen"
    assert to_discord_markdown("| a |", 2000) == "| a |"


def test_code_in_markdown_is_left_unchanged() -> None:
    text = "```md\n#### x\n| a |\n---\n```\n`![a](b)`"
    assert to_discord_markdown(text, 2000) == text
    assert to_discord_markdown("~~~\n```\n---\n~~~", 2000) == "```\n`\u200b`\u200b`\n---\n```"
    assert to_discord_markdown("``a ` b``", 2000) == "`` a ` b ``"


def test_text_without_markdown_is_escaped_for_discord() -> None:
    assert (
        to_discord_markdown("\\# no\n\\- no\n1986\\. A year\n\\> no", 2000) == "\\# no\n\\- no\n1986\\. A year\n\\> no"
    )
    assert to_discord_markdown("2 * 3, a_b_c, \\_x\\_ ||y||", 2000) == "2 * 3, a_b_c, \\_x\\_ \\||y\\||"
    assert to_discord_markdown("https://a.b/x_y_?z=*", 2000) == "https://a.b/x_y_?z=*"
    assert to_discord_markdown("\\[a\\](https://b.c)", 2000) == "[a]\\(https://b.c)"


def test_converted_text_never_exceeds_the_maximum_length() -> None:
    text = "\\*" * 50
    assert to_discord_markdown(text, 100) == text
    assert to_discord_markdown("x" * 101, 100) == "x" * 99 + "…"
    assert to_discord_markdown(" \n ", 100) == "…"


def test_mentions_become_names_and_a_leading_mention_of_the_bot_is_removed() -> None:
    names = {"1": "Ann", "2": "general", "9": "Hark"}
    assert replace_mentions("<@9> ask <@!1> in <#2> <:wave:55>", names, "9") == "ask @Ann in #general :wave:"
    assert replace_mentions("does <@9> agree, <@7>?", names, "9") == "does @Hark agree, <@7>?"
