"""What the agent can do."""
