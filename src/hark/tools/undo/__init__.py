"""Undo: restores files to their state before a step changed them."""
