"""Settings: their types, where they come from, and whether they can be used."""


class SettingsError(Exception):
    """The settings can't be used; the text says where, why, and what to do."""
