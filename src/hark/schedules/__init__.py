"""Schedules: prompts that are sent to a session at set times."""
