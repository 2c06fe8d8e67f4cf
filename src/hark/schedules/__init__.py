"""Prompts that are sent to a session by the clock."""
