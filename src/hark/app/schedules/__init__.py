"""Schedules: prompts that are put into a session when their time has come."""
