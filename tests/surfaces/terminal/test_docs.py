"""The page about keys says what the code does."""

from docs.make_keys import PAGE, page


def test_the_page_about_keys_is_made_from_the_tables() -> None:
    assert PAGE.read_text() == page(), "run: python -m docs.make_keys"
