"""Parses shell commands as bash does."""
