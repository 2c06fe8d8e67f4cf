"""Parsing shell commands as bash does."""
