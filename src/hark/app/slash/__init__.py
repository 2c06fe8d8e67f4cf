"""Slash commands, the same on every surface."""
