"""Why a server can't be used."""


class ServerFailure(Exception):
    """A server could not be reached, or ended; the text says why. `is_final`: trying again by itself won't help."""

    def __init__(self, text: str, *, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final
