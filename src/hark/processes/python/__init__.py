"""Python worker processes."""
