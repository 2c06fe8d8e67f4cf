"""Following a parsed command as a shell would run it."""
