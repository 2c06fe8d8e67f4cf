"""Undo: files as they were before changing steps."""
