"""Hark: an AI agent that listens while it works."""

__version__ = "0.1.0"
