"""The embedded model, served by a child process."""
