"""The documentation page for key bindings matches the code."""

from docs.make_keys import PAGE, render_page


def test_key_bindings_page_is_generated_from_the_tables() -> None:
    assert PAGE.read_text() == render_page(), "run: python -m docs.make_keys"
