"""Pure functions on text that every layer may use."""
