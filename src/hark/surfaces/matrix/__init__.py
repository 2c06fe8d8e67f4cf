"""Matrix: rooms of a homeserver as places where people meet the agent."""
