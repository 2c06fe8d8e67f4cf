"""The agent: sessions, turns and steps; it knows the protocol only."""
