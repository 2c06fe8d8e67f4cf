"""The embedded model, which runs in a child process."""
