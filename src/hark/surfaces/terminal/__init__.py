"""The terminal app. The input line stays usable while the agent works."""
