"""One session: its state, its decisions and its owner."""
