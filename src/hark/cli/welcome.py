"""What a person reads who starts Hark for the first time: three lines, and each has something to do."""


def welcome(route: str, is_embedded: bool) -> list[str]:
    """Return the lines, each for 80 columns; `route` is the name of the model that answers.

    The embedded model is there to try the program with, not to work with: that is said first.
    """
    if is_embedded:
        first = "A small demonstration model answers. For real work, choose one: hark setup"
    else:
        first = f"{route} answers. Try: what is in this directory?"
    return [
        first,
        "Type while it works: Enter interrupts, Tab queues, Ctrl+S steers, Esc stops.",
        "/help lists commands, /demo shows an interrupt; hark doctor helps when stuck.",
    ]
