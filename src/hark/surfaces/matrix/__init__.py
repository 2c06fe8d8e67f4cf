"""Matrix: users talk to the agent in the rooms of a homeserver."""
