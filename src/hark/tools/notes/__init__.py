"""What the agent notes for itself: memory, recall, todo."""
