"""Pure text functions that every layer may use."""
