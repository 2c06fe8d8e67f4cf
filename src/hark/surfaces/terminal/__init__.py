"""The terminal app: typing works while the agent does."""
