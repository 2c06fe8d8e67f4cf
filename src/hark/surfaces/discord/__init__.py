"""Discord: direct messages, servers and their threads."""
