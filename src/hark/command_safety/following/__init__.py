"""Interprets a parsed shell command without running it."""
