"""Assembles the agent: settings, shared services, sessions, slash commands and the exit."""
