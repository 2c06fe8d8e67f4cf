"""Settings: their types, where they come from, and whether they can be used."""
