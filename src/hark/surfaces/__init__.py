"""The surfaces through which users interact with the agent."""
