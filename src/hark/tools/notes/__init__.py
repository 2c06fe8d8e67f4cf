"""Tools for the agent's own notes: memory, recall and todo."""
